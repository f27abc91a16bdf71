"""kill -9 under load."""

import random

from load import Load
from servers import Failed, Site


def outcome(load, rounds, *more):
    """Audits everything; returns the rows of the table, and fails if anything is lost, doubled or odd."""
    load.repeat()
    lost, doubled, odd = load.audit()
    if lost or doubled or odd:
        raise Failed(f"lost {lost[:5]} ({len(lost)}), doubled {doubled[:5]} ({len(doubled)}), odd: {odd[:3]}")
    return [
        ("rounds", rounds),
        ("acknowledged writes", len(load.acknowledged)),
        ("lost", len(lost)),
        ("doubled", len(doubled)),
        *more,
        ("numbers of invoices", "no gaps"),
        ("kantoor verify", "clean"),
    ]


def kill(given):
    chance = random.Random(given.seed)
    with Site(given) as site:
        site.start()
        load = Load(site.kantoor)
        interrupted = 0
        for number in range(given.rounds):
            before = len(load.acknowledged)
            load.start()
            load.wait_for(8 + chance.randrange(60))
            site.kill()
            load.end()
            interrupted += len(load.unanswered)
            site.start()
            lost = load.missing(list(load.acknowledged)[before:])
            if lost:
                raise Failed(f"round {number + 1}: {len(lost)} acknowledged writes are lost: {lost[:5]}")
            load.repeat()
        return outcome(load, given.rounds, ("without a response, repeated once", interrupted))
