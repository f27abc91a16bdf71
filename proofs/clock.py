"""Jumps of the machine's clock."""

from kills import outcome
from load import Load
from servers import Client, Disk, Site, free_port, until

HOUR, DAY = 3600, 24 * 3600
JUMPS = [HOUR, 0, -HOUR, 0, 10 * DAY, 0, -10 * DAY, 0, 400 * DAY, -400 * DAY]


def jumps(given):
    metrics = free_port()
    with Site(given, settings=[f"metrics_listen=127.0.0.1:{metrics}"]) as site:
        machine = Disk(site.folder / "nothing")
        site.kantoor.environment.update(machine.environment())
        try:
            site.start()
            load = Load(site.kantoor)
            for number in range(given.rounds):
                load.start()
                load.wait_for(30)
                machine.set(clock=JUMPS[number % len(JUMPS)])
                load.wait_for(30)
                load.end()
                goes_on(site, metrics)
            machine.set()
            load.start()
            load.wait_for(30)
            load.end()
            return outcome(load, given.rounds, ("jumps", told(JUMPS[: given.rounds])))
        finally:
            site.kantoor.kill()
            machine.remove()


def told(jumps):
    """Returns the distances that were jumped, such as "1 h, 240 h, forward and back"."""
    hours = sorted({abs(jump) // HOUR for jump in jumps} - {0})
    return ", ".join(f"{number} h" for number in hours) + (", forward and back" if any(jump < 0 for jump in jumps) else "")


def goes_on(site, metrics):
    """Jobs are not left for the time at which the clock has been, and every loop makes progress."""

    def is_up_to_date():
        status, body = Client(metrics).send("GET", "/metrics")
        behind = [line.split()[1] for line in body.decode().splitlines() if line.startswith("kantoor_jobs_behind_seconds ")]
        return status == 200 and behind and int(behind[0]) < 60

    # Printing gives way to everything else, so that a busy machine is minutes behind without any jump.
    until("the jobs", is_up_to_date, 900)
    until("a ready server", lambda: site.kantoor.client().send("GET", "/ready")[0] == 200)
