"""The signatures of webhooks, according to Standard Webhooks 1.0."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any


class InvalidSignature(Exception):
    """A webhook that does not come from Kantoor, or is too old."""


def verify_webhook(body: bytes | str, headers: Mapping[str, str], secret: str, *, tolerance: float = 300) -> dict[str, Any]:
    """Returns the event of a webhook, or raises `InvalidSignature`.

    `body` is the body as it was received, before it was parsed. `tolerance` is how many seconds the clocks may differ; an older
    webhook may be a copy that somebody sends again. Store `seq` or the header ``webhook-id``: a webhook can arrive twice.
    """
    raw = body.encode() if isinstance(body, str) else body
    found = {name.lower(): value for name, value in headers.items()}
    try:
        id, sent_at, signatures = (found[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        age = abs(time.time() - int(sent_at))
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except KeyError as missing:
        raise InvalidSignature(f"the header {missing} is missing") from None
    except (ValueError, binascii.Error) as invalid:
        raise InvalidSignature(f"the timestamp or the secret is malformed: {invalid}") from None
    if age > tolerance:
        raise InvalidSignature("the webhook is too old, or too new")
    digest = hmac.new(key, f"{id}.{sent_at}.".encode() + raw, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    # There are two while the secret is rotated.
    if not any(hmac.compare_digest(expected, one.encode()) for one in signatures.split()):
        raise InvalidSignature("no signature matches")
    event = json.loads(raw)
    if not isinstance(event, dict):
        raise InvalidSignature("the body is not an event")
    return event
