"""One account attacks, another one works: what the attack costs the server in memory and the neighbour in time."""

import concurrent.futures
import http.client
import http.server
import io
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import zipfile

from servers import Client, Failed, Site, free_port

MIB = 1024 * 1024
BOUNDARY = "kantoor-proof"
# How long the attacks that have no end of their own last.
SECONDS = 8


class Watch:
    """Memory of the server and of the processes that it starts, and the requests of a neighbour, while an attack runs."""

    def __init__(self, kantoor, key):
        self.kantoor, self.key, self.pid = kantoor, key, kantoor.process.pid
        self.times, self.failed, self.others = [], [], 0
        self.stop = threading.Event()

    def __enter__(self):
        # Peaks are counted anew.
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self.work, self.sample)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def work(self):
        client, number = Client(self.kantoor.port, self.key), 0
        while not self.stop.is_set():
            number += 1
            began = time.monotonic()
            try:
                if number % 2:
                    status, body = client.send("POST", "/v1/products", {"name": f"Hose {number}", "price": 1})
                else:
                    status, body = client.send("GET", "/v1/products?per_page=5")
                if status >= 300:
                    self.failed.append(f"{status} {body[:200]}")
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(repr(error))
                self.stop.wait(0.2)
            self.times.append(time.monotonic() - began)
            self.stop.wait(0.01)

    def sample(self):
        while not self.stop.wait(0.05):
            self.others = max(self.others, sum(resident(pid, "VmRSS") for pid in children(self.pid)))

    def peak(self):
        return resident(self.pid, "VmHWM")

    def share(self, part):
        """Returns the time in ms that this share of the requests stays below."""
        ordered = sorted(self.times) or [0]
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def resident(pid, name):
    """Returns a figure of a process's memory in MiB."""
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) // 1024 if found else 0


def children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return [
            int(child)
            for task in tasks
            for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []


# --- The attacks -----------------------------------------------------------------------------------------------------------


def workbook(sheet, strings):
    """Returns an Excel workbook with this sheet and these shared strings, as XML."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    packages = "http://schemas.openxmlformats.org/package/2006"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{packages}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" '
        f'Type="{office}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{main}" {strings}</sst>',
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return packed.getvalue()


def claiming_workbook(_):
    sheet = '<row r="1"><c r="A1" t="inlineStr"><is><t>name</t></is></c></row>'
    return workbook(sheet, 'uniqueCount="10000000000000000" count="10000000000000000"><si><t>a</t></si>')


def swelling_workbook(_):
    """Returns a small file that unpacks to hundreds of thousands of rows."""
    rows = "".join(f'<row r="{n}">' + "<c t=\"s\"><v>0</v></c>" * 40 + "</row>" for n in range(1, 120_001))
    return workbook(rows, 'uniqueCount="1" count="1"><si><t>name</t></si>')


def line_breaks(_):
    return b"name\n" + b"\n" * (24 * MIB)


def short_lines(_):
    return b"name\n" + b"a\n" * (12 * MIB)


def one_line(_):
    return b'name\n"' + b"a" * (24 * MIB)


def nested(_):
    return b"[" * (24 * MIB)


def importing(make, extension, times=1):
    """Returns an attack that has a file checked, several times at once."""

    def attack(site, big):
        content = make(site)
        status, body = upload(big(), content, f"table.{extension}")
        if status != 201:
            return f"upload refused ({status})", True
        file = json.loads(body)["data"]["id"]
        check = {"resource": "products", "file_id": file, "mapping": {"name": "name"}}
        with concurrent.futures.ThreadPoolExecutor(times) as pool:
            asked = [pool.submit(big().send, "POST", "/v1/imports", check, None, 300) for _ in range(times)]
            return count(asked), True

    return attack


def upload(client, content, name):
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    body = head + content + f"\r\n--{BOUNDARY}--\r\n".encode()
    return client.send("POST", "/v1/files", body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}, 120)


def count(asked):
    """Returns how often each status came."""
    found = {}
    for one in asked:
        try:
            status = str(one.result()[0])
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        found[status] = found.get(status, 0) + 1
    return ", ".join(f"{times} × {status}" for status, times in sorted(found.items()))


def large_documents(site, big):
    """Eight connections that create documents of 512 KB."""
    rows = [{"name": "n" * 200, "description": "d" * 4800, "quantity": 1, "unit_price": 1} for _ in range(100)]
    body = json.dumps({"title": "Large", "rows": rows})
    return steadily(8, lambda client: client.send("POST", "/v1/invoices", body), big)


def searches(site, big):
    return steadily(8, lambda client: client.send("GET", "/v1/products?search=e"), big)


def steadily(connections, send, big):
    """Sends on several connections for some seconds."""
    end, found, lock = time.monotonic() + SECONDS, {}, threading.Lock()

    def work():
        client = big()
        while time.monotonic() < end:
            status, _ = send(client)
            with lock:
                found[status] = found.get(status, 0) + 1

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ", ".join(f"{times} × {status}" for status, times in sorted(found.items())), True


def streams(site, big):
    """As many event streams as the server gives; says what the neighbour's own stream gets."""
    held, refused = [], 0
    try:
        for _ in range(1100):
            status, connection = open_stream(site.kantoor.port, site.kantoor.key)
            if status == 200:
                held.append(connection)
            else:
                connection.close()
                refused += 1
                if refused == 5:
                    break
        status, connection = open_stream(site.kantoor.port, site.neighbour)
        connection.close()
        return f"{len(held)} streams held; the neighbour's: {status}", status == 200
    finally:
        for connection in held:
            connection.close()


def open_stream(port, key):
    connection = socket.create_connection(("127.0.0.1", port), 10)
    asked = f"GET /v1/events/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n"
    connection.sendall(asked.encode())
    return int(connection.recv(4096).split()[1]), connection


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers a call at once, or holds it as long as the caller waits."""

    def do_POST(self):
        if self.path == "/held":
            time.sleep(30)
        else:
            self.server.arrived.append(time.monotonic())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def calls(site, big):
    """Two hundred runs that call a receiver which does not answer; says how long the neighbour's call waits."""
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", site.receiver), Receiver)
    receiver.daemon_threads, receiver.arrived = True, []
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    try:
        for client, path in ((big(), "held"), (Client(site.kantoor.port, site.neighbour), "quick")):
            step = {"type": "http", "url": f"http://127.0.0.1:{site.receiver}/{path}", "timeout_seconds": 20}
            flow = {"name": "Call", "trigger_type": "custom", "trigger_key": "call", "steps": [step]}
            status, body = client.send("POST", "/v1/automation/flows", flow)
            if status != 201:
                raise Failed(f"a flow: {status} {body[:300]}")
        client = big()
        for _ in range(200):
            client.send("POST", "/v1/automation/trigger", {"event": "call", "data": {}})
        time.sleep(1)
        began = time.monotonic()
        Client(site.kantoor.port, site.neighbour).send("POST", "/v1/automation/trigger", {"event": "call", "data": {}})
        while not receiver.arrived and time.monotonic() < began + 60:
            time.sleep(0.005)
        if not receiver.arrived:
            return "the neighbour's call: not within 60 s", False
        waited = receiver.arrived[0] - began
        # Less than the calls before it take, also on a busy machine.
        return f"the neighbour's call after {waited:.2f} s", waited < 10
    finally:
        receiver.shutdown()
        receiver.server_close()


def nothing(site, big):
    time.sleep(SECONDS / 2)
    return "for comparison", True


ATTACKS = {
    "nothing": nothing,
    "a workbook that claims 10^16 strings": importing(claiming_workbook, "xlsx"),
    "a small workbook that swells": importing(swelling_workbook, "xlsx"),
    "24 MiB of line breaks, eight at once": importing(line_breaks, "csv", 8),
    "12 million lines, eight at once": importing(short_lines, "csv", 8),
    "a quote that never ends, eight at once": importing(one_line, "csv", 8),
    "24 MiB of brackets, eight at once": importing(nested, "jsonl", 8),
    "eight writers of 512 KB": large_documents,
    "eight searches": searches,
    "all event streams": streams,
    "two hundred calls that hang": calls,
}


def neighbours(given):
    rows = []
    attacks = {name: attack for name, attack in ATTACKS.items() if re.search(given.paths or "", name)}
    receiver = free_port()
    settings = ["public_limit_per_minute=0", "trigger_limit_per_minute=0", "streams_per_key=2000",
                "allow_private_addresses=127.0.0.1"]
    for name, attack in attacks.items():
        with Site(given, settings=settings) as site:
            site.receiver = receiver
            site.start()
            site.neighbour = neighbour(site)
            with Watch(site.kantoor, site.neighbour) as watch:
                began = time.monotonic()
                try:
                    said, holds = attack(site, site.kantoor.client)
                except (OSError, http.client.HTTPException) as error:
                    said, holds = repr(error), False
                took = time.monotonic() - began
            ended = site.kantoor.process.poll() is not None
            row = (
                f"{took:.1f} s, server {watch.peak()} MiB, its processes {watch.others} MiB; neighbour: p50 "
                f"{watch.share(0.5):.0f} ms, p99 {watch.share(0.99):.0f} ms, {len(watch.failed)} of {len(watch.times)} failed; {said}"
                f"{'; THE SERVER ENDED' if ended else ''}"
            )
            print(f"{name}: {row}", flush=True)
            rows.append((name, row))
            # Without rounds, it only measures.
            if given.rounds and (ended or watch.failed or not holds):
                raise Failed(f"{name}: {row} {watch.failed[:2]}")
    return rows


def neighbour(site):
    """Creates a second account and returns its key."""
    settings = (word for setting in site.kantoor.settings for word in ("--set", setting))
    done = subprocess.run(site.kantoor.command("account", "create", "Neighbour", *settings), capture_output=True, text=True)
    found = re.search(r"kt_\w{36}", done.stdout + done.stderr)
    if not found:
        raise Failed(f"kantoor account create: {done.stdout}{done.stderr}")
    return found.group()
