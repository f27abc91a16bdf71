"""Writes that a server acknowledges, and the audit of what is there afterwards."""

import http.client
import itertools
import json
import threading
import time

from servers import Failed

KINDS = ("products", "invoices", "files")
BOUNDARY = "kantoor-proof"


class Load:
    """Creates records on several connections until it is stopped."""

    def __init__(self, kantoor, threads=6):
        self.kantoor, self.threads = kantoor, threads
        self.numbers, self.lock = itertools.count(), threading.Lock()
        self.acknowledged = {}  # name: (kind, id, number)
        self.unanswered = {}  # name: kind
        self.refused = {}
        self.odd = []
        self.running, self.stop = [], threading.Event()

    def start(self):
        self.stop.clear()
        self.running = [threading.Thread(target=self.work, daemon=True) for _ in range(self.threads)]
        for thread in self.running:
            thread.start()

    def end(self):
        self.stop.set()
        for thread in self.running:
            thread.join()

    def wait_for(self, more, seconds=180):
        """Waits for this many acknowledged writes."""
        goal, end = len(self.acknowledged) + more, time.monotonic() + seconds
        while len(self.acknowledged) < goal:
            if time.monotonic() > end:
                raise Failed(f"hardly any load: {len(self.acknowledged)} acknowledged; {self.odd[:3]}")
            time.sleep(0.005)

    def work(self):
        client = self.kantoor.client()
        while not self.stop.is_set():
            number = next(self.numbers)
            kind = KINDS[0 if number % 10 < 5 else 1 if number % 10 < 9 else 2]
            self.create(client, kind, f"{kind[0]}{number}")

    def create(self, client, kind, name):
        try:
            status, body = send(client, kind, name)
        except ConnectionRefusedError:
            # It was not sent.
            self.stop.wait(0.05)
            return
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.unanswered[name] = kind
            return
        with self.lock:
            if status == 201:
                made = json.loads(body)["data"]
                self.acknowledged[name] = (kind, made["id"], made.get("number"))
            elif status == 503 and (b"nothing was changed" in body or b"nothing was stored" in body):
                self.refused[name] = f"refused: {body[:300]}"
            elif status in (408, 503):
                # 408: the clock jumped past the deadline of an upload, and the client is told to send it again.
                self.unanswered[name] = kind
            else:
                self.odd.append(f"{kind} {name}: {status} {body[:300]}")
        if status == 503:
            # As a client does; and thousands of refused writes say no more than a hundred.
            self.stop.wait(0.2)

    def repeat(self):
        """Sends again what had no response, with the same Idempotency-Key."""
        for attempt in range(10):
            if not self.unanswered:
                break
            # Where several servers elect a new primary, or the machine is busy, it takes a while.
            time.sleep(min(attempt, 5))
            left, self.unanswered = list(self.unanswered.items()), {}

            def send_some(some):
                client = self.kantoor.client()
                for name, kind in some:
                    self.create(client, kind, name)

            senders = [threading.Thread(target=send_some, args=(left[n :: self.threads],)) for n in range(self.threads)]
            for sender in senders:
                sender.start()
            for sender in senders:
                sender.join()
        if self.unanswered:
            raise Failed(f"{len(self.unanswered)} repeated writes have no response")

    def missing(self, names):
        """Returns those of `names` that were acknowledged and are not there."""
        client, lost = self.kantoor.client(), []
        for name in names:
            kind, id_, _ = self.acknowledged[name]
            if client.send("GET", f"/v1/{kind}/{id_}")[0] != 200:
                lost.append(name)
        return lost

    def audit(self):
        """Returns how many were lost, exist twice or although they were refused, and what is odd."""
        client, there, numbers = self.kantoor.client(), {}, {}
        for kind in KINDS:
            for item in client.all(f"/v1/{kind}"):
                name = item["title"] if kind == "invoices" else item["name"]
                there.setdefault(name, []).append((kind, item["id"], item.get("number")))
                if kind == "invoices":
                    series, number = item["number"].rsplit("-", 1)
                    numbers.setdefault(series, []).append(int(number))
        lost = [name for name, made in self.acknowledged.items() if made not in there.get(name, [])]
        doubled = [name for name, all_ in there.items() if len(all_) > 1]
        doubled += [f"{name} ({self.refused[name]})" for name in self.refused if name in there]
        # PDFs of invoices are files too.
        odd = list(self.odd)
        for series, given in numbers.items():
            # Each year has its own: a jump of the clock may reach another one.
            if sorted(given) != list(range(1, len(given) + 1)):
                odd.append(f"the numbers of invoices {series} have gaps or duplicates: {len(given)}, up to {max(given)}")
        problem = self.kantoor.verify()
        if problem:
            odd.append(f"kantoor verify: {problem}")
        return lost, doubled, odd


def send(client, kind, name):
    headers = {"Idempotency-Key": name}
    if kind == "files":
        body = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: text/plain\r\n\r\n{name * 500}\r\n--{BOUNDARY}--\r\n"
        )
        headers["Content-Type"] = f"multipart/form-data; boundary={BOUNDARY}"
        return client.send("POST", "/v1/files", body, headers)
    if kind == "invoices":
        body = {"title": name, "generate": True, "rows": [{"name": "x", "unit_price": 1}]}
    else:
        body = {"name": name}
    return client.send("POST", f"/v1/{kind}", body, headers)
