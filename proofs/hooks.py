"""What schemathesis has to know about Kantoor beside its schema; see schemathesis.toml."""

import json
import re
import uuid

import schemathesis

# What a schema says about a value by itself. A valid request that is refused for one of these shows that the schema is wrong.
# Other codes are also used for rules that no schema can say: references to records, rules between fields, days in the future.
SAID_BY_SCHEMA = {"wrong_type", "unknown_field", "read_only", "too_long", "invalid_characters"}

# Where these codes depend on something else: the account defines its custom fields, also in the steps of a flow; the operator
# of a condition decides which type its value has; the resource of an export has the filters; the type of record that a step
# updates has the fields.
DEPENDS = re.compile(
    r"(steps\[\d+\]\.)?custom_fields\.|(.*\.)?conditions\[\d+\]\.value$|filters\.|steps\[\d+\]\.fields\."
)

# By the contract, other values than those of the schema are accepted here: an unknown priority is stored as `normal`, and an
# unknown type of contact is ignored.
ACCEPTED = {("/v1/tickets", "priority"), ("/v1/tickets/{id}", "priority"), ("/v1/clients", "contact_type"),
            ("/v1/suppliers", "contact_type")}  # fmt: skip


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives each request a key of its own: a request with the key of another one is refused, whatever else it has."""
    key = case.headers.get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch("[!-~]{1,255}", key):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops the failures that are none."""
    kind = type(failure).__name__
    if kind == "RejectedPositiveData":
        return not is_no_matter_of_schema(response)
    if kind == "AcceptedNegativeData":
        # Without pages, this list ignores the parameters of pages, as the document says.
        if case.operation.label == "GET /v1/files" and not {"page", "per_page"} & set(case.query or {}):
            return False
        # A part of a form is always text: what is generated as null, a number or a boolean arrives as the text `null`, `0` or
        # `false`, which is a valid name of a file.
        if case.media_type == "multipart/form-data" and "violates `type`" in failure.message:
            return False
        invalid = failure.message.split("Invalid component:")[-1]
        return not any(case.operation.path == path and re.search(rf"\b{name}\b", invalid) for path, name in ACCEPTED)
    return True


def is_beyond(detail):
    """Whether a pattern cannot say it: it is about a value somewhere inside an object whose members the caller chooses, or about
    an invisible tag (U+E0000 to U+E007F), which not every language can write in a regular expression."""
    return re.match(r"contains (a string|the number)|must not contain .* U\+E00", detail["message"]) is not None


def is_no_matter_of_schema(response):
    """Whether a valid request was refused for what no schema can say."""
    if response.status_code != 422:
        return False
    error = json.loads(response.content)["error"]
    wrong = {one["code"] for one in error["details"] if not DEPENDS.match(one["field"]) and not is_beyond(one)}
    return error["code"] != "validation_failed" or not SAID_BY_SCHEMA & wrong
