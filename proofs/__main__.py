"""Proofs of what Kantoor promises, each a command: see docs/proofs.md.

    python3 proofs kill --rounds 200 --database postgres
"""

import argparse
import os
import pathlib
import signal
import sys
import time

import clock
import disks
import inputs
import kills
import neighbours
import nodes
from servers import Failed

ROOT = pathlib.Path(__file__).resolve().parent.parent

PROOFS = {
    "kill": (kills.kill, 20, "kill -9 under load: nothing acknowledged is lost or doubled, numbers have no gaps"),
    "power": (disks.power, 20, "power cuts that drop unsynced writes: nothing acknowledged is lost"),
    "full-disk": (disks.full, 5, "a full disk: refused with 503, nothing lost, goes on when there is room"),
    "failed-sync": (disks.failed_sync, 5, "a sync that fails: nothing is acknowledged after it"),
    "clock": (clock.jumps, 10, "clock jumps under load: nothing lost, work does not stand still"),
    "neighbours": (neighbours.neighbours, 1, "one account attacks, another one works on; --rounds 0 only measures"),
    "nodes": (nodes.nodes, 8, "three nodes with different clocks, paused in turn: nothing is sent twice without a mark"),
    "schemathesis": (inputs.schemathesis, 50, "generated requests to every operation; --rounds is examples per operation"),
    "strings": (inputs.strings, 1, "the big list of naughty strings in every kind of text"),
    "json": (inputs.json_suite, 1, "a public suite of JSON that parsers must accept or refuse"),
}


def arguments():
    names = "\n".join(f"  {name:14}{what}" for name, (_, _, what) in PROOFS.items())
    parser = argparse.ArgumentParser(
        prog="python3 proofs", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=f"proofs:\n{names}"
    )
    parser.add_argument("proof", choices=PROOFS, metavar="PROOF")
    parser.add_argument("--rounds", type=int, help="how often; each proof has its own default")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--binary", default=os.environ.get("KANTOOR_BIN"), help="the server [default: the newest in target/]")
    parser.add_argument("--folder", default=None, help="where the databases go [default: the temporary folder]")
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen at random")
    parser.add_argument(
        "--break",
        dest="breaks",
        choices=["sync", "order"],
        help="power: break a promise on purpose, which the proof must notice. sync: commits are not synced; "
        "order: responses before the commit. On SQLite, it needs a binary built for tests.",
    )
    parser.add_argument("--paths", help="schemathesis: only operations whose path matches this expression; neighbours: only such attacks")
    parser.add_argument(
        "--phases", default="examples,coverage,fuzzing,stateful", help="schemathesis: [default: examples,coverage,fuzzing,stateful]"
    )
    given = parser.parse_args()
    given.rounds = PROOFS[given.proof][1] if given.rounds is None else given.rounds
    if given.binary is None:
        built = [ROOT / "target" / profile / "kantoor" for profile in ("release", "debug")]
        built = [path for path in built if path.exists()]
        if not built:
            parser.error("no server was built; run cargo build --release, or name one with --binary")
        given.binary = str(max(built, key=lambda path: path.stat().st_mtime))
    if not pathlib.Path(given.binary).is_file():
        parser.error(f"there is no file {given.binary}")
    if given.folder and not pathlib.Path(given.folder).is_dir():
        parser.error(f"there is no folder {given.folder}")
    is_setting = given.breaks == "sync" and given.database == "postgres"
    if given.breaks and not is_setting and b"KANTOOR_TEST_BREAK" not in pathlib.Path(given.binary).read_bytes():
        parser.error(f"{given.binary} cannot be broken: name a binary that was built for tests (docs/proofs.md)")
    return given


def main():
    given, started = arguments(), time.monotonic()
    # Ends everything that was started, like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        rows = PROOFS[given.proof][0](given)
    except Failed as failure:
        print(f"{given.proof} on {given.database} does NOT hold: {failure}", file=sys.stderr)
        return 1
    print(f"\n{given.proof} on {given.database}, {time.monotonic() - started:.0f} s")
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"  {name:{width}}  {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
