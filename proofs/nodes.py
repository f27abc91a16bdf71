"""Several nodes whose clocks differ, and which are paused in turn while they send."""

import collections
import http.server
import json
import pathlib
import random
import re
import shutil
import signal
import socketserver
import subprocess
import tempfile
import threading
import time

from servers import Client, Disk, Failed, Kantoor, Postgres, kill_all, until

# Seconds that the clocks of the nodes are wrong.
CLOCKS = [600, -600, 0]
MAILS, CALLS, HOOKS = 12, 6, 6
# Longer than it takes the other nodes to notice.
PAUSE = 16
# Seconds within which a live node takes due work, also what a paused node had claimed; and how much longer a busy machine may need.
STATED, LENIENT = 15, 30
# How long a receiver takes, at most: a pause often comes in between. It refuses one in so many for the time being.
SLOW, REFUSED = 1.6, 10
# The longest delay before the second attempt, in seconds.
DELAY = {"mail": 12, "call": 12, "hook": 6}


class Outside:
    """A mail server and a receiver of HTTP calls, which count what arrives."""

    def __init__(self, chance):
        self.lock, self.seen = threading.Lock(), {kind: collections.Counter() for kind in ("mail", "call", "hook")}
        self.chance, self.first, self.refused, self.again, outside = chance, {}, {}, {kind: [] for kind in DELAY}, self

        class Smtp(socketserver.StreamRequestHandler):
            def handle(self):
                say = lambda words: self.wfile.write(words.encode() + b"\r\n")
                say("220 sink")
                while line := self.rfile.readline():
                    verb = line[:4].upper()
                    if verb == b"DATA":
                        say("354 go on")
                        lines = []
                        while (line := self.rfile.readline()) not in (b".\r\n", b""):
                            lines.append(line)
                        if not line:
                            return
                        found = re.search(rb"(?im)^message-id: <([^@>]+)", b"".join(lines))
                        takes = outside.takes("mail", found.group(1).decode())
                        time.sleep(chance.random() * SLOW)
                        say("250 thanks" if takes else "451 later")
                    elif verb == b"QUIT":
                        return say("221 bye")
                    else:
                        time.sleep(chance.random() * SLOW / 4)
                        say("250 fine")

        class Http(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                takes = outside.takes("call" if self.path == "/call" else "hook", self.headers["webhook-id"])
                time.sleep(chance.random() * SLOW)
                self.send_response(200 if takes else 503)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        class Quiet(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads = True, True

            def handle_error(self, *_):
                """A client that went away."""

        self.servers = [Quiet(("127.0.0.1", 0), handler) for handler in (Smtp, Http)]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.smtp, self.http = (server.server_address[1] for server in self.servers)

    def takes(self, kind, name):
        """Notes an arrival; returns whether it is accepted."""
        now = time.time()
        with self.lock:
            if name in self.refused:
                begin = self.refused.pop(name)
                # Of the second attempt, only what it waited after it was due.
                self.again[kind].append(max(0, now - begin - DELAY[kind]))
            elif name not in self.first and self.chance.randrange(REFUSED) == 0:
                self.first[name], self.refused[name] = now, now
                return False
            self.seen[kind][name] += 1
            self.first.setdefault(name, now)
            return True

    def end(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


class Held:
    """What a paused node has claimed: when it was paused, and when a live node took over."""

    # Of each kind: the table, the condition of a row that is being sent, and that of one that has ended.
    TABLES = {
        "mail": ("jobs", "state = 'running' AND kind = 'deliver'", "state IN ('done', 'failed')"),
        "call": ("runs", "lease_until > 0", "status IN ('success', 'failed')"),
        "hook": ("webhook_deliveries", "status = 'sending'", "status IN ('delivered', 'failed')"),
    }

    def __init__(self, site):
        self.site, self.waits = site, {kind: [] for kind in self.TABLES}
        # By kind and id: the number of the claim, and when its node was paused. By what the receiver sees: the same by another clock.
        self.open, self.since, self.over, self.lock = {}, {}, False, threading.Lock()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def paused(self, node):
        """Notes what the node holds; it is named as in the table of nodes."""
        begin, clock = time.monotonic(), time.time()
        mail = "(SELECT mail_id FROM deliveries WHERE deliveries.id = CAST(payload AS JSON) ->> 'delivery')"
        for kind, (table, sending, _) in self.TABLES.items():
            name = mail if kind == "mail" else "id"
            for row, claim, name in self.site.ask(f"SELECT id, claim, {name} FROM {table} WHERE {sending} AND node = '{node}'"):
                self.since[name] = clock
                with self.lock:
                    self.open[kind, row] = (int(claim), begin)

    def watch(self):
        while not self.over:
            time.sleep(0.2)
            with self.lock:
                known = dict(self.open)
            for kind, (table, sending, ended) in self.TABLES.items():
                names = ", ".join(f"'{row}'" for own, row in known if own == kind)
                sql = f"SELECT id, claim, CAST({ended} AS INT) FROM {table} WHERE id IN ({names}) AND (({sending}) OR {ended})"
                now = time.monotonic()
                for row, claim, is_over in self.site.ask(sql) if names else []:
                    first, begin = known[kind, row]
                    if int(claim) > first:
                        self.waits[kind].append(now - begin)
                    elif is_over == "0":
                        continue
                    # Otherwise, its end was on the way to the database when the node was paused.
                    with self.lock:
                        self.open.pop((kind, row), None)

    def continued(self):
        """The node goes on with what nobody has taken over."""
        with self.lock:
            for (kind, _), (_, begin) in self.open.items():
                self.waits[kind].append(time.monotonic() - begin)
            self.open.clear()

    def end(self):
        self.over = True
        self.thread.join()


class Nodes:
    """Three nodes on one PostgreSQL, each with another clock."""

    def __init__(self, given, outside):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kantoor-proof-", dir=given.folder))
        self.postgres, self.all, self.machines = Postgres(self.folder), [], []
        settings = ["smtp_host=127.0.0.1", f"smtp_port={outside.smtp}", "smtp_security=none", "smtp_timeout_seconds=30",
                    "allow_private_addresses=127.0.0.1", "trigger_limit_per_minute=0", "database_readers=4",
                    "database_writers=2", "log_level=warn", "quota_endpoints_per_host=0"]
        for number, _ in enumerate(CLOCKS):
            node = Kantoor(given.binary, self.folder, self.postgres, settings=settings)
            node.log = self.folder / f"kantoor-{number}.log"
            machine = Disk(self.folder / "nothing")
            node.environment.update(machine.environment())
            machine.set(clock=CLOCKS[number])
            self.all.append(node)
            self.machines.append(machine)

    def start(self):
        self.postgres.start()
        for node in self.all:
            node.key = self.all[0].key
            node.start()
            known = {name for name, in self.ask("SELECT id FROM nodes")}
            node.name, = known - {other.name for other in self.all if other is not node and other.process}

    def ask(self, sql):
        """Returns the rows of a query."""
        command = [self.postgres.programs / "psql", "-XAt", "-d", self.postgres.url, "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr)
        return [line.split("|") for line in done.stdout.splitlines()]

    def end(self):
        for node in self.all:
            if node.process:
                node.process.send_signal(signal.SIGCONT)
                kill_all(node.process)
        self.postgres.kill()
        for machine in self.machines:
            machine.remove()


def nodes(given):
    if given.database != "postgres":
        raise Failed("several nodes need --database postgres")
    chance = random.Random(given.seed)
    outside = Outside(chance)
    site = Nodes(given, outside)
    held = None
    try:
        site.start()
        asked, clients = prepare(site, outside)
        held = Held(site)
        for _ in range(given.rounds):
            work(clients, asked)
            paused = chance.choice(site.all)
            time.sleep(chance.random())
            paused.process.send_signal(signal.SIGSTOP)
            held.paused(paused.name)
            work([client for client, node in zip(clients, site.all) if node is not paused], asked)
            time.sleep(PAUSE)
            held.continued()
            paused.process.send_signal(signal.SIGCONT)
        rows = outcome(given, site, outside, asked, held)
    finally:
        if held:
            held.end()
        site.end()
        outside.end()
    shutil.rmtree(site.folder, ignore_errors=True)
    return rows


def prepare(site, outside):
    clients = [node.client() for node in site.all]

    def post(path, body):
        status, answer = clients[0].send("POST", path, body)
        if status not in (200, 201):
            raise Failed(f"{path}: {status} {answer[:300]}")
        return json.loads(answer)["data"]

    post("/v1/webhook-endpoints", {"url": f"http://127.0.0.1:{outside.http}/hook", "events": ["product.created"]})
    steps = [{"type": "http", "url": f"http://127.0.0.1:{outside.http}/call"}]
    post("/v1/automation/flows", {"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": steps})
    row = [{"name": "x", "unit_price": 1}]
    invoice = post("/v1/invoices", {"title": "x", "rows": row})["id"]
    return {"invoice": invoice, "mail": 0, "call": 0, "hook": 0}, clients


def work(clients, asked):
    """Has mails, calls and webhooks sent."""

    def send(client, kind):
        letter = {"to": "anna@ster.example", "subject": "x", "message": "x", "include_pdf": False}
        path, body = {
            "mail": (f"/v1/invoices/{asked['invoice']}/send", letter),
            "call": ("/v1/automation/trigger", {"event": "a.b"}),
            "hook": ("/v1/products", {"name": "x"}),
        }[kind]
        status, answer = client.send("POST", path, body)
        if status not in (200, 201):
            raise Failed(f"{path}: {status} {answer[:300]}")
        asked[kind] += 1

    for kind, count in (("mail", MAILS), ("call", CALLS), ("hook", HOOKS)):
        for number in range(count):
            send(clients[number % len(clients)], kind)


def spread(seconds):
    """Returns a few figures of a distribution, and the longest."""
    if not seconds:
        return "none", 0
    seconds = sorted(seconds)
    at = lambda part: seconds[int((len(seconds) - 1) * part)]
    return f"{len(seconds)}: half within {at(0.5):.1f} s, 99 % within {at(0.99):.1f} s, all within {seconds[-1]:.1f} s", seconds[-1]


def waits(site, outside, held):
    """How long due work waited: from when it became due, or its node was paused, until it arrived."""
    due = {
        "mail": "SELECT id, created_at FROM mails",
        "call": "SELECT id || '.0', created_at FROM runs",
        "hook": "SELECT hook.id, at FROM webhook_deliveries AS hook JOIN log ON log.account_id = hook.account_id AND log.seq = hook.seq",
    }
    found = {}
    for kind, sql in due.items():
        begins = {name: max(int(at) / 1000, held.since.get(name.removesuffix(".0"), 0)) for name, at in site.ask(sql)}
        found[kind] = [outside.first[name] - begin for name, begin in begins.items() if name in outside.first]
    return found


def outcome(given, site, outside, asked, held):
    open_mails = "SELECT count(*) FROM deliveries WHERE status NOT IN ('sent', 'failed')"
    open_calls = "SELECT count(*) FROM runs WHERE status NOT IN ('success', 'failed')"
    open_hooks = "SELECT count(*) FROM webhook_deliveries WHERE status NOT IN ('delivered', 'failed')"
    waiting = time.monotonic()
    over = lambda: all(site.ask(sql) == [["0"]] for sql in (open_mails, open_calls, open_hooks)) and enough()
    enough = lambda: len(outside.seen["hook"]) >= asked["hook"]
    try:
        until("the end of all work", over, 180)
    except Failed as failure:
        left = site.ask("SELECT status, attempts, maybe_twice, reason, next_attempt_at FROM deliveries WHERE status <> 'sent'")
        left += site.ask("SELECT kind, state, attempts, lost, run_at, last_error FROM jobs WHERE kind = 'deliver' AND state <> 'done'")
        left += site.ask("SELECT id, status, attempts, lost, due_at, lease_until FROM runs WHERE status <> 'success'")
        left += site.ask("SELECT id, status, attempts, lost, due_at FROM webhook_deliveries WHERE status <> 'delivered'")
        raise Failed(f"{failure}: {left[:20]} {({kind: len(seen) for kind, seen in outside.seen.items()})} of {asked}") from None
    waited = time.monotonic() - waiting
    # What is known of each: how often it may have been sent.
    known = {
        "mail": dict(site.ask("SELECT mail_id, maybe_twice FROM deliveries")),
        "call": {f"{run}.0": int(attempts) - 1 for run, attempts in site.ask("SELECT id, CAST(results AS JSON) -> 0 ->> 'attempts' FROM runs")},
        "hook": {delivery: int(attempts) - 1 for delivery, attempts in site.ask("SELECT id, attempts FROM webhook_deliveries")},
    }
    rows, wrong = [("rounds", given.rounds), ("clocks of the nodes", ", ".join(f"{seconds:+} s" for seconds in CLOCKS))], []
    for kind, name in (("mail", "mails"), ("call", "calls of flows"), ("hook", "webhooks")):
        seen = outside.seen[kind]
        twice = [one for one, count in seen.items() if count > 1]
        marked = [one for one, mark in known[kind].items() if int(mark) > 0]
        unmarked = [one for one in twice if one not in marked]
        rows.append((name, f"{len(seen)} of {asked[kind]}, twice {len(twice)}, marked {len(marked)}, twice without a mark {len(unmarked)}"))
        if unmarked or len(seen) != asked[kind]:
            wrong.append(f"{name}: {len(seen)} of {asked[kind]} arrived, {len(twice)} twice, {len(unmarked)} of them without a mark: {unmarked[:3]}")
    arrived = waits(site, outside, held)
    for kind, name in (("mail", "mails"), ("call", "calls of flows"), ("hook", "webhooks")):
        measured = (
            ("from due, or the pause, to arrived", arrived[kind]),
            ("refused, from due again to arrived", outside.again[kind]),
            ("from the pause to taken over", held.waits[kind]),
        )
        for what, seconds in measured:
            what = f"{name}, {what}"
            words, longest = spread(seconds)
            late = sum(1 for one in seconds if one > STATED)
            rows.append((what, f"{words}; {late} after more than {STATED} s"))
            if longest > LENIENT:
                wrong.append(f"{what}: {longest:.1f} s")
    rows.append(("until everything was done after the last pause", f"{waited:.1f} s"))
    if wrong:
        raise Failed(f"{'; '.join(wrong)} ({rows})")
    return rows
