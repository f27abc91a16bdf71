"""The servers under test: PostgreSQL, Kantoor, and the disk between them and their files."""

import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent


class Failed(Exception):
    """A proof does not hold."""


def free_port():
    """Returns a port that no outgoing connection takes while its server is being restarted."""
    while True:
        port = random.randrange(12000, 19000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def until(what, done, seconds=180):
    """Waits until `done` returns something true, and returns it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        time.sleep(0.02)
    raise Failed(f"{what}: it does not happen within {seconds} s")


def kill_all(process):
    """Kills a process and its descendants at once, as a power cut does."""
    everyone = [process.pid]
    for pid in everyone:
        try:
            os.kill(pid, signal.SIGSTOP)
            for task in os.listdir(f"/proc/{pid}/task"):
                everyone += map(int, pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except (ProcessLookupError, FileNotFoundError):
            continue
    for pid in everyone:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
    gone = lambda: not any(pathlib.Path(f"/proc/{pid}").exists() and state(pid) != "Z" for pid in everyone)
    until("the end of the processes", gone)


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


class Client:
    """One connection, opened again when it breaks."""

    def __init__(self, port, key=""):
        self.port, self.key, self.http = port, key, None

    def send(self, method, path, body=None, headers=None, timeout=20):
        """Returns the status and the body; raises OSError or HTTPException if there is no response."""
        if self.http is None:
            self.http = http.client.HTTPConnection("127.0.0.1", self.port)
        self.http.timeout = timeout
        if self.http.sock is not None:
            self.http.sock.settimeout(timeout)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        try:
            self.http.request(method, path, body, headers)
            response = self.http.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self.http.close()
            self.http = None
            raise

    def get(self, path):
        status, body = self.send("GET", path)
        if status != 200:
            raise Failed(f"GET {path}: {status} {body[:300]}")
        return json.loads(body)

    def all(self, path):
        """Returns the records of all pages."""
        page, found = 1, {}
        while True:
            # The oldest first, since PDFs are created meanwhile. When the clock has jumped, a new record may still be older than
            # others and move them to the next page, where they are read again: records are told apart by their id.
            some = self.get(f"{path}?per_page=100&page={page}&sort=created_at&order=asc")["data"]
            if not some:
                return list(found.values())
            found.update((record["id"], record) for record in some)
            page += 1


class Disk:
    """Files below `folder`, which forget what is not synced when the power is cut."""

    def __init__(self, folder, sync_us=0):
        self.folder = folder.resolve()
        # In memory: the journal itself must survive, and its size does not count.
        self.journal = pathlib.Path(tempfile.mkdtemp(prefix="kantoor-disk-", dir="/dev/shm"))
        self.journal.chmod(0o777)
        self.sync_us = sync_us
        self.library = self.journal / "disk.so"
        compiler = os.environ.get("CC", "cc")
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", "-o", self.library, HERE / "disk.c", "-lpthread"], check=True
        )
        (self.journal / "control").write_bytes(bytes(4096))
        # PostgreSQL has another user.
        (self.journal / "control").chmod(0o644)
        self.library.chmod(0o755)

    def environment(self):
        return {
            "LD_PRELOAD": str(self.library),
            "DISK_FOLDER": str(self.folder),
            "DISK_JOURNAL": str(self.journal),
            "DISK_SYNC_US": str(self.sync_us),
        }

    def set(self, fails_to_sync=False, is_full=False, clock=0):
        """Changes the disk, and the clock of the machine by this many seconds."""
        with open(self.journal / "control", "r+b") as control:
            control.write(bytes([fails_to_sync, is_full]) + bytes(6) + clock.to_bytes(8, "little", signed=True))

    def cut_power(self, choose):
        """Takes back the writes that were not synced, except those that `choose()` lets survive; returns their number.
        All processes have ended."""
        inodes = {str(path.stat().st_ino): path for path in self.folder.rglob("*") if path.is_file()}
        lost = 0
        for name, path in inodes.items():
            journal = self.journal / name
            if not journal.exists():
                continue
            entries = list(read_journal(journal.read_bytes()))
            with open(path, "r+b") as file:
                for offset, old, _, size, _ in reversed(entries):
                    file.seek(offset)
                    file.write(old)
                    file.truncate(size)
                for offset, _, new, _, truncates in entries:
                    # A disk may have written some of them, in any order.
                    if not choose():
                        lost += 1
                    elif truncates:
                        file.truncate(offset)
                    else:
                        file.seek(offset)
                        file.write(new)
            journal.unlink()
        for left in self.journal.iterdir():
            if left.name.isdigit():
                left.unlink()
        return lost

    def remove(self):
        shutil.rmtree(self.journal, ignore_errors=True)


def read_journal(bytes_):
    """Returns the entries; one that was not completed before the kill has not happened."""
    at, head = 0, 40
    while at + head <= len(bytes_):
        offset, old, new, size, truncates = (
            int.from_bytes(bytes_[at + n : at + n + 8], "little") for n in range(0, head, 8)
        )
        start = at + head
        at = start + old + new
        if at > len(bytes_):
            return
        yield offset, bytes_[start : start + old], bytes_[start + old : at], size, truncates


class Postgres:
    """A server with the settings that PostgreSQL ships with: every commit is synced."""

    def __init__(self, folder, settings=()):
        self.folder, self.port, self.process, self.disk = folder / "postgres", free_port(), None, None
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        if not programs:
            raise Failed("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        self.programs = programs[-1]
        self.become = []
        if os.geteuid() == 0:
            self.become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            self.folder.mkdir(parents=True)
            shutil.chown(self.folder, "postgres", "postgres")
            for parent in (folder, *folder.parents):
                if parent.stat().st_uid == os.geteuid() and parent.is_relative_to(tempfile.gettempdir()):
                    parent.chmod(parent.stat().st_mode | 0o011)
        self.run("initdb", "-U", "kantoor", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D", self.folder)
        lines = [f"port = {self.port}", "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''",
                 "shared_buffers = 32MB", "max_connections = 60", *settings]
        with open(self.folder / "postgresql.conf", "a") as conf:
            conf.write("\n".join(lines) + "\n")

    def run(self, program, *arguments):
        command = [*self.become, self.programs / program, *arguments]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{program}: {done.stderr or done.stdout}")

    @property
    def url(self):
        return f"postgres://kantoor@127.0.0.1:{self.port}/postgres?sslmode=disable"

    def start(self):
        environment = {"PATH": os.environ["PATH"], **(self.disk.environment() if self.disk else {})}
        log = open(self.folder.parent / "postgres.log", "ab")
        # `env` sets the library after setpriv, which drops it.
        pairs = [f"{name}={value}" for name, value in environment.items()]
        command = [*self.become, "env", "-i", *pairs, self.programs / "postgres", "-D", self.folder]
        self.process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log)

        def accepts():
            if self.process.poll() is not None:
                said = (self.folder.parent / "postgres.log").read_text(errors="replace")
                raise Failed(f"PostgreSQL ended with {self.process.returncode}: {said[-2000:]}")
            ready = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "kantoor"]
            return subprocess.run(ready).returncode == 0

        until("PostgreSQL", accepts)

    def kill(self):
        if self.process:
            kill_all(self.process)
            self.process = None

    def is_alive(self):
        return self.process is not None and self.process.poll() is None


class Kantoor:
    """The server itself."""

    def __init__(self, binary, folder, postgres=None, environment=None, settings=()):
        self.binary, self.data, self.postgres = str(pathlib.Path(binary).resolve()), folder / "data", postgres
        self.log, self.port, self.key = folder / "kantoor.log", free_port(), ""
        self.environment, self.settings, self.process = dict(environment or {}), settings, None

    def command(self, *arguments):
        url = ["--database-url", self.postgres.url] if self.postgres else []
        return [self.binary, *arguments, "--data", str(self.data), *url]

    def start(self):
        settings = [f"listen=127.0.0.1:{self.port}", "rate_limit_per_minute=0", "log_level=warn", *self.settings]
        command = self.command("serve", *(word for setting in settings for word in ("--set", setting)))
        log = open(self.log, "ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **self.environment})
        until("Kantoor", self.responds)
        if not self.key:
            self.key = re.search(r"kt_\w{36}", self.said()).group()

    def responds(self):
        if self.process.poll() is not None:
            raise Failed(f"Kantoor ended with {self.process.returncode}: {self.said()[-2000:]}")
        try:
            return Client(self.port).send("GET", "/health")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def client(self):
        return Client(self.port, self.key)

    def said(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        if self.process:
            kill_all(self.process)
            self.process = None

    def verify(self):
        """Returns why `kantoor verify` is not satisfied, or nothing."""
        # With its settings, which say where the files are.
        settings = (word for setting in self.settings for word in ("--set", setting))
        done = subprocess.run(self.command("verify", *settings), capture_output=True, text=True)
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


class Site:
    """A new Kantoor on a new database, with the disk where it matters: below the database."""

    def __init__(self, arguments, sync_us=0, disk=False, environment=None, settings=(), postgres_settings=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kantoor-proof-", dir=arguments.folder))
        self.postgres = None
        if arguments.database == "postgres":
            self.postgres = Postgres(self.folder, postgres_settings)
        self.kantoor = Kantoor(arguments.binary, self.folder, self.postgres, environment, settings)
        self.disk = None
        if disk:
            if self.postgres is None:
                self.kantoor.data.mkdir()
            self.disk = Disk(self.postgres.folder if self.postgres else self.kantoor.data, sync_us)
            if self.postgres:
                self.postgres.disk = self.disk
            else:
                self.kantoor.environment.update(self.disk.environment())

    def start(self):
        if self.postgres and not self.postgres.is_alive():
            self.postgres.start()
        self.kantoor.start()

    def kill(self, with_database=False):
        if with_database and self.postgres:
            self.postgres.kill()
        self.kantoor.kill()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.kantoor.kill()
        if self.postgres:
            self.postgres.kill()
        if self.disk:
            self.disk.remove()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
