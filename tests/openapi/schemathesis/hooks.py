"""The rules that JSON Schema cannot express, for Schemathesis.

`before_call` completes requests that are valid by their schema: rules between fields, and values that only the service can
give. `filter_case` drops requests whose invalid part the service does not read. With RESPONSES_FILE, the number of responses
by operation, phase, validity and status is written to that file as JSON.

TOKENS has the bearer tokens with their rights as JSON; the first one has all rights. The oracles judge every response.
"""

import atexit
import base64
import collections
import itertools
import json
import os
import pathlib
import re
import uuid

import schemathesis
from oracles import SECRET_MARK, Exchange, Oracles

POOL = "pool.test"
# A line that is not a key matches the pattern too: base64 has the parts of the key.
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
OWNER = {"orgEmail": "ops@acme.example", "providers": ["local"], "sshPublicKey": SSH_KEY}
HOLDER = "region-a/controller-0"
# What the cursor of a list contains, in base64.
POSITIONS = {"/api/v1/pool/{domain}/list": b"acme", "/api/v1/buckets": b"catalyst-acme", "/api/v1/names": b"name:pool.test:acme"}
STORAGE_FIELDS = {
    "objectStorageRegion": r"fsn1|nbg1|hel1",
    "objectStorageAccessKey": r"\s*[!-~]{16,128}\s*",
    "objectStorageSecretKey": r"\s*[!-~]{32,256}\s*",
}
# Of requests to the API. No response may quote them.
SECRET_FIELDS = ("objectStorageAccessKey", "objectStorageSecretKey", "token")
POOL_FIELDS = {"sovereignPoolDomain": r"(?s).*\S.*", "sovereignSubdomain": r"\s*[A-Za-z][A-Za-z0-9-]*\s*"}
DEPLOYMENTS = "/api/v1/deployments"
DEPLOYMENT_CALLS = tuple(f"{DEPLOYMENTS}/{{id}}/{call}" for call in ("apply", "plan", "destroy"))
ORPHAN_CALLS = tuple(f"/api/v1/pool/{{domain}}/orphans/{call}" for call in ("adopt", "remove"))
RELEASE = "/api/v1/pool/{domain}/release"
TOKENS = json.loads(os.environ["TOKENS"])
oracles = Oracles(TOKENS)
calls = itertools.count()


@schemathesis.auth(refresh_interval=None)
class BearerToken:
    """Every other request of the fuzzing phase has a token with fewer rights."""

    def get(self, case, context):
        call = next(calls)
        is_fuzzing = case.meta is not None and case.meta.phase.name == "fuzzing"
        return TOKENS[call // 2 % len(TOKENS) if is_fuzzing and call % 2 else 0]["token"]

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


@schemathesis.serializer("application/x-ndjson")
def serialize_lines(context, value):
    return {"data": (json.dumps(value) + "\n").encode()}


@schemathesis.deserializer("application/x-ndjson")
def deserialize_lines(context, response):
    """One line: the document has the schema of a line."""
    return json.loads(response.content.splitlines()[-1])


def is_ignored(body, fields):
    """Whether a field that the service does not read has an invalid value."""
    return any(
        name in body and not (isinstance(body[name], str) and re.fullmatch(pattern, body[name]))
        for name, pattern in fields.items()
    )


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """The documents have the bodies of links in an extension, for generators that reject the standard field."""
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                for link in response.get("links", {}).values():
                    if "x-request-body" in link:
                        link["requestBody"] = link.pop("x-request-body")


@schemathesis.hook
def filter_case(context, case):
    path, body = case.operation.path, case.body
    is_object = isinstance(body, dict)
    has_body = is_object and bool(body)
    if path == RELEASE:
        # `sub` is read if the body has no name, or is not an object.
        if not is_object and (body is None or isinstance(body, (list, str, int, float, bool))):
            return False
        return has_body != bool(case.query and "sub" in case.query)
    if path in DEPLOYMENT_CALLS + ORPHAN_CALLS and not is_object:
        # A body that is not an object counts as absent.
        return not isinstance(body, (list, str, int, float, bool)) and body is not None
    if path.endswith("/plan") and is_object and body.get("operation") == "destroy":
        # A plan of a destroy reads the keys only, and not even these without object storage.
        return set(body) == {"operation"}
    if path in DEPLOYMENT_CALLS and is_object:
        # The deployments here have no object storage. An apply to one with a domain of its own ignores the pool.
        return not is_ignored(body, {**STORAGE_FIELDS, **POOL_FIELDS})
    if path == DEPLOYMENTS and is_object:
        ignored = {} if "hetzner" in str(body.get("providers")) else STORAGE_FIELDS
        return not is_ignored(body, ignored if body.get("sovereignDomainMode") == "pool" else {**ignored, **POOL_FIELDS})
    if path == "/lease/{slot}" and case.headers and "If-None-Match" in case.headers:
        # workerd removes an empty header.
        return case.headers.get("If-Match") != ""
    return True


def to_cursor(position):
    return base64.b64encode(position).decode().rstrip("=")


def unique_label():
    """A subdomain that no other request has, so that a sequence of requests has the same result whenever it is sent."""
    return f"n{uuid.uuid4().hex}"


def complete_query(path, query):
    if "cursor" in query:
        query["cursor"] = to_cursor(POSITIONS.get(path, b"1"))
    if path == "/api/v1/names":
        # A cursor belongs to the search of its page; this one to a search by name.
        for name in ("address", "createdBy", "state", "dns"):
            if "cursor" in query:
                query.pop(name, None)
    if path == "/leases" and "slot" in query:
        for name in ("prefix", "limit", "cursor"):
            query.pop(name, None)


def complete_lease_write(headers, body):
    if "If-None-Match" in headers:
        headers.pop("If-Match", None)
    elif not headers.get("If-Match"):
        headers["If-Match"] = "0"
    if isinstance(body, dict) and "holder" in body:
        headers.pop("X-Holder", None)
    elif not headers.get("X-Holder"):
        headers["X-Holder"] = HOLDER


def complete_deployment(body):
    body.update(OWNER, orgName=f"Acme {oracles.tenants.next_mark()}")
    if body.get("sovereignDomainMode") == "pool":
        body["sovereignPoolDomain"] = POOL
        body.setdefault("sovereignSubdomain", "acme")
        body.pop("sovereignFQDN", None)
    else:
        # A domain of a tenant is not in a pool.
        body["sovereignFQDN"] = "cloud.acme.example"


def complete_apply(body, deployment):
    """The name cannot change, and only a deployment with object storage needs its keys."""
    for name in list(body):
        if name.startswith(("sovereign", "objectStorage")):
            del body[name]
    fixed = {**OWNER, "orgName": f"Acme {oracles.tenants.owners.get(deployment, '')}".strip()}
    body.update({name: value for name, value in fixed.items() if name in body})


# By form: the fields that exclude those of the other forms. The first one is required.
TARGETS = (
    {"loadBalancerIP": "203.0.113.10", "loadBalancerIPv6": "2001:db8::10", "consoleLoadBalancerIP": "203.0.113.11"},
    {"loadBalancerHostname": "lb.cloud.example"},
    {"nameservers": ["ns1.cloud.example", "ns2.cloud.example"], "ds": [dict(keyTag=1, algorithm=13, digestType=2, digest="AB" * 32)]},
)


def complete_target(body):
    given = {name for name, value in body.items() if value is not None}
    form = next((form for form in TARGETS if given & set(form)), TARGETS[0])
    for other in TARGETS:
        for name, value in other.items():
            if form is not other:
                body.pop(name, None)
            elif name in given or name == next(iter(form)):
                body[name] = value


def complete_body(path, body, parameters):
    for name in SECRET_FIELDS:
        if isinstance(body.get(name), str):
            body[name] = f"{SECRET_MARK}{uuid.uuid4().hex}"
    if path.endswith(("/commit", "/update")):
        complete_target(body)
    if path.endswith(("/commit", "/update")) and body.get("sovereignFQDN") is not None:
        body["sovereignFQDN"] = f"{body['subdomain'].strip()}.{POOL}"
    if path.endswith("/reserve"):
        body["createdBy"] = f"team {oracles.tenants.next_mark()}"
    elif path == "/leases/renew":
        body["leases"] = list({lease["slot"]: lease for lease in body["leases"]}.values())
    elif path == DEPLOYMENTS:
        complete_deployment(body)
    elif path in DEPLOYMENT_CALLS:
        complete_apply(body, str(parameters["id"]).lower())
    elif path.startswith("/api/v1/credentials/") and body.get("provider"):
        body["provider"] = "hetzner"


def complete_step(path, body):
    """Names that are free: the steps after a rejected reservation or deployment would be rejected too."""
    if path.endswith("/reserve"):
        body["subdomain"] = unique_label()
    elif path == DEPLOYMENTS and body.get("sovereignDomainMode") == "pool":
        body["sovereignSubdomain"] = unique_label()


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    path = case.operation.path
    if case.headers is not None and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.query:
        complete_query(path, case.query)
    if path == "/lease/{slot}" and case.headers is not None:
        if case.method == "PUT":
            complete_lease_write(case.headers, case.body)
        elif case.method == "DELETE":
            # The link of a vacant lease has no holder.
            case.headers["X-Holder"] = case.headers.get("X-Holder") or HOLDER
    if isinstance(case.body, dict):
        complete_body(path, case.body, case.path_parameters)
        if case.meta.phase.name == "stateful":
            complete_step(path, case.body)


responses = collections.Counter()
# By the id of the case.
violations = {}


def to_exchange(case, response):
    return Exchange(
        case.method,
        case.operation.path,
        response.status_code,
        parameters=case.path_parameters or {},
        query=case.query or {},
        headers={name.lower(): value for name, value in response.request.headers.items()},
        body=case.body,
        response_headers="\n".join(f"{name}: {', '.join(values)}" for name, values in response.headers.items()),
        text=response.content.decode(errors="replace"),
    )


@schemathesis.check
def oracle(context, response, case):
    found = violations.pop(case.id, [])
    assert not found, "; ".join(found)


@schemathesis.hook
def after_call(context, case, response):
    violations[case.id] = oracles.judge(to_exchange(case, response))
    if case.meta is None:
        return
    responses[
        case.operation.definition.raw["operationId"],
        str(case.meta.phase.name),
        case.meta.generation.mode.is_positive,
        response.status_code,
    ] += 1


@atexit.register
def write_responses():
    if path := os.environ.get("RESPONSES_FILE"):
        fields = ("operation", "phase", "isPositive", "status", "count")
        lines = [dict(zip(fields, (*key, count))) for key, count in sorted(responses.items())]
        pathlib.Path(path).write_text(json.dumps(lines))
