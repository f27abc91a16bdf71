"""Input from public packages: generated requests, naughty strings, JSON that is hard to parse."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import urllib.parse

from servers import Failed, Site

HERE = pathlib.Path(__file__).resolve().parent

# Pinned, so that a new release changes no result.
SCHEMATHESIS = "schemathesis==4.32.5"
STRINGS = ("blns", "2.0.4", "package/resources/blns.json")
SUITE = ("json-test-suite", "1.0.0", "package/data/parsing.js")


def cache():
    """Where packages are kept between runs."""
    folder = HERE.parent / "target" / "proofs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def packed(package, version, member):
    """Returns a file of a package of npm."""
    kept = cache() / f"{package}-{version}.tgz"
    if not kept.exists():
        command = ["npm", "pack", "--silent", f"{package}@{version}"]
        done = subprocess.run(command, cwd=cache(), capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"npm cannot fetch {package}: {done.stderr}")
    with tarfile.open(kept) as archive:
        return archive.extractfile(member).read().decode()


def schemathesis(given):
    """All phases of schemathesis; the schema is the server's own."""
    venv = cache() / "venv"
    program = venv / "bin" / "schemathesis"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin" / "pip", "install", "--quiet", SCHEMATHESIS], check=True)
    settings = ["public_limit_per_minute=0", "trigger_limit_per_minute=0"]
    with Site(given, settings=settings) as site:
        site.start()
        url = f"http://127.0.0.1:{site.kantoor.port}/v1/openapi.json"
        command = [
            program, "--config-file", HERE / "schemathesis.toml", "run", url,
            "--phases", given.phases, "--max-examples", str(given.rounds),
            "--seed", str(given.seed), "--request-timeout", "30", "--continue-on-failure", "--no-color",
            "--suppress-health-check", "all", "--exclude-path-regex", "/stream$",
            *(["--include-path-regex", given.paths] if given.paths else []),
        ]  # fmt: skip
        report = site.folder / "schemathesis.log"
        with open(report, "wb") as out:
            environment = {**os.environ, "NO_COLOR": "1", "KANTOOR_KEY": site.kantoor.key, "PROOFS_FOLDER": str(HERE)}
            done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=site.folder)
        text = report.read_text(errors="replace")
        if site.kantoor.process.poll() is not None:
            raise Failed(f"the server ended: {site.kantoor.said()[-1000:]}")
        problem = site.kantoor.verify()
        if problem:
            raise Failed(f"kantoor verify: {problem}")
        if done.returncode:
            raise Failed(f"see {report}\n{text[-6000:]}")
        found = lambda words: next((line.strip() for line in text.splitlines() if words in line), "?")
        return [
            ("examples per operation", given.rounds),
            ("operations", found("Operations:") if "Operations:" in text else found("selected")),
            ("test cases", found(" generated, ")),
            ("failures", 0),
            ("kantoor verify", "clean"),
        ]


def expect(condition, words):
    if not condition:
        raise Failed(words)


def strings(given):
    """Each string as a name, a text, a search, a header and an id; and all of them on PDFs."""
    listed = json.loads(packed(*STRINGS))
    kept, refused = 0, 0
    with Site(given, settings=["public_limit_per_minute=0"]) as site:
        site.start()
        client = site.kantoor.client()
        names = []
        for text in listed:
            for path, field in (("products", "name"), ("notes", "body"), ("clients", "company_name")):
                status, body = client.send("POST", f"/v1/{path}", {field: text})
                expect(status in (201, 422), f"POST /v1/{path} with {text!r}: {status} {body[:300]}")
                if status == 422:
                    refused += 1
                    continue
                kept += 1
                made = json.loads(body)["data"]
                again = client.get(f"/v1/{path}/{made['id']}")["data"]
                expect(again[field] == made[field], f"{text!r} is read as {again[field]!r}, written as {made[field]!r}")
                if field == "name":
                    expect(again[field].split() == text.split(), f"{text!r} is stored as {again[field]!r}")
                    names.append(text)
            quoted = urllib.parse.quote(text, safe="")
            for path in (f"/v1/products?search={quoted}", f"/v1/products/{quoted}", f"/v1/clients?email={quoted}"):
                if len(path) < 60_000:
                    status, body = client.send("GET", path)
                    expect(status < 500, f"GET {path}: {status} {body[:300]}")
            header = text.encode().replace(b"\n", b"").replace(b"\r", b"").decode("latin-1")
            try:
                status, body = client.send("GET", "/v1/products", None, {"X-Request-Id": header})
                expect(status < 500, f"X-Request-Id {text!r}: {status}")
            except (OSError, http.client.HTTPException, ValueError):
                client.http = None
        pdfs = 0
        for start in range(0, len(names), 10):
            rows = [{"name": name, "unit_price": 1} for name in names[start : start + 10]]
            status, body = client.send("POST", "/v1/invoices", {"title": names[start], "rows": rows, "generate": True})
            expect(status == 201, f"an invoice: {status} {body[:300]}")
            id_ = json.loads(body)["data"]["id"]
            status, body = client.send("GET", f"/v1/invoices/{id_}/pdf/content", timeout=300)
            expect(status == 200 and body.startswith(b"%PDF"), f"the PDF of an invoice: {status} {body[:300]}")
            pdfs += 1
        problem = site.kantoor.verify()
        expect(not problem, f"kantoor verify: {problem}")
        return [
            ("strings", len(listed)),
            ("stored and read back", kept),
            ("refused with 422", refused),
            ("PDFs with all of them", pdfs),
            ("server errors", 0),
            ("kantoor verify", "clean"),
        ]


# The API refuses these although parsers may accept them.
REFUSED = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}


def json_suite(given):
    """Valid JSON is not called malformed, invalid JSON is, and nothing is a server error."""
    text = packed(*SUITE)
    cases = json.loads(re.search(r"export default (\[.*\])", text, re.S).group(1))
    counts = {"y": 0, "n": 0, "i": 0}
    with Site(given) as site:
        site.start()
        client = site.kantoor.client()
        for case in cases:
            # As a whole body, and as a member of one.
            sent = case["input"].encode("utf-8", "surrogatepass")
            for body in (sent, b'{"name": "x", "description": ' + sent + b"}"):
                status, said = client.send("POST", "/v1/products", body)
                name, kind = case["name"], case["name"][0]
                malformed = status == 400
                expect(status < 500, f"{name}: {status} {said[:300]}")
                if kind == "y" and name not in REFUSED:
                    expect(not malformed, f"{name} is valid: {status} {said[:300]}")
                if kind == "n" and sent.strip():
                    expect(malformed, f"{name} is not valid: {status} {said[:300]}")
            counts[kind] += 1
        return [
            ("valid, accepted", counts["y"]),
            ("invalid, refused with 400", counts["n"]),
            ("undefined, no server error", counts["i"]),
        ]
