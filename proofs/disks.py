"""Disks that lose power, are full, or fail to sync."""

import http.client
import random

from kills import outcome
from load import Load
from servers import Failed, Site, until

# How long a sync takes here, so that a response before it has time to arrive.
SYNC_US = 3000


def power(given):
    """Cuts the power under load. With --break, at least one cut must lose an acknowledged write."""
    chance = random.Random(given.seed)
    off = ["synchronous_commit = off"] if given.breaks == "sync" else []
    with Site(given, SYNC_US, disk=True, postgres_settings=off) as site:
        site.start()
        if given.breaks:
            # Not at the first start, whose writes depend on each other.
            site.kill()
            site.kantoor.environment["KANTOOR_TEST_BREAK"] = given.breaks
            site.start()
        load = Load(site.kantoor)
        dropped = 0
        for number in range(given.rounds):
            before = len(load.acknowledged)
            load.start()
            load.wait_for(20 + chance.randrange(80))
            site.kill(with_database=True)
            load.end()
            # All of the unsynced writes are lost, or any of them.
            survive = 0 if number % 2 == 0 else 0.5
            dropped += site.disk.cut_power(lambda: chance.random() < survive)
            try:
                site.start()
                lost = load.missing(list(load.acknowledged)[before:])
            except Failed:
                if given.breaks:
                    return caught(number, "the database does not open")
                raise
            if lost and given.breaks:
                return caught(number, f"{len(lost)} of {len(load.acknowledged) - before} acknowledged writes are lost")
            if lost:
                raise Failed(f"power cut {number + 1}: {len(lost)} acknowledged writes are lost: {lost[:5]}")
            load.repeat()
        if given.breaks:
            raise Failed(f"{given.rounds} power cuts did not notice that '{given.breaks}' is broken")
        return outcome(load, given.rounds, ("unsynced writes dropped", dropped))


def caught(number, what):
    return [("caught in round", number + 1), ("how", what)]


def failed_sync(given):
    """Lets syncs fail under load, then cuts the power: what was acknowledged is there."""
    exits = {}
    with Site(given, SYNC_US, disk=True) as site:
        site.start()
        load = Load(site.kantoor)
        for number in range(given.rounds):
            before = len(load.acknowledged)
            load.start()
            load.wait_for(20)
            site.disk.set(fails_to_sync=True)
            if site.postgres:
                # Its backends panic, and the server starts again and fails to recover.
                until("the end of PostgreSQL", lambda: not site.postgres.is_alive() or "PANIC" in log_of(site.postgres))
            else:
                until("the end of Kantoor", lambda: site.kantoor.process.poll() is not None)
                exits[site.kantoor.process.returncode] = exits.get(site.kantoor.process.returncode, 0) + 1
            site.kill(with_database=True)
            load.end()
            site.disk.set()
            site.disk.cut_power(lambda: False)
            if site.postgres:
                (site.folder / "postgres.log").unlink()
            site.start()
            lost = load.missing(list(load.acknowledged)[before:])
            if lost:
                raise Failed(f"round {number + 1}: acknowledged after a failed sync and lost: {lost[:5]}")
            load.repeat()
        if site.postgres is None and set(exits) != {74}:
            raise Failed(f"the server ends with {exits}, not with 74")
        return outcome(load, given.rounds, ("exit codes", exits or "PostgreSQL panics"))


def log_of(postgres):
    return (postgres.folder.parent / "postgres.log").read_text(errors="replace")


def full(given):
    """Fills the disk under load and makes room again."""
    refused = 0
    with Site(given, disk=True) as site:
        site.start()
        load = Load(site.kantoor)
        for _ in range(given.rounds):
            load.start()
            load.wait_for(20)
            before = len(load.refused)
            site.disk.set(is_full=True)
            client = site.kantoor.client()

            def is_refused():
                try:
                    status, body = client.send("POST", "/v1/notes", {"body": "x" * 50_000})
                except (OSError, http.client.HTTPException):
                    return False
                return status == 503 and body

            body = until("a refusal", is_refused)
            if site.kantoor.process.poll() is not None:
                raise Failed(f"the server ended: {site.kantoor.said()[-500:]}")
            if site.postgres is None and b"disk_full" not in body:
                raise Failed(f"another error than disk_full: {body[:300]}")
            if client.send("GET", "/v1/products")[0] != 200 and site.postgres is None:
                raise Failed("reads fail too")
            site.disk.set()
            if site.postgres and not site.postgres.is_alive():
                site.postgres.start()
            load.wait_for(20)
            load.end()
            # What a full disk refused was not repeated by anyone.
            refused += len(load.refused) - before
        return outcome(load, given.rounds, ("refused writes", refused))
