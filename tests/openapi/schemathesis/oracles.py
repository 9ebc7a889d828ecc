"""What no response may show or grant, whatever the document says: a secret, a name or a lease twice, the data of another
tenant, more than the rights of a token. They judge the responses of a run in the order in which they arrive.
"""

import base64
import dataclasses
import json
import re

# Part of every secret that the hooks send, beside the tokens.
SECRET_MARK = "Zq7secretxK"
TENANT_MARK = re.compile(r"Tn\d+x")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{47,4000}")
# Scripts and style sheets of the API reference are files of a package.
ASSET_LENGTH = 300_000
DEPLOYMENTS = "/api/v1/deployments"


@dataclasses.dataclass(frozen=True)
class Exchange:
    """A request and its response. `path` is that of the operation, with the names of its parameters."""

    method: str
    path: str
    status: int
    parameters: dict = dataclasses.field(default_factory=dict)
    query: dict = dataclasses.field(default_factory=dict)
    headers: dict = dataclasses.field(default_factory=dict)
    body: object = None
    response_headers: str = ""
    text: str = ""

    @property
    def fields(self):
        """Of a response that is a JSON object."""
        try:
            value = json.loads(self.text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def sent(self):
        """Of a request whose body is a JSON object."""
        return self.body if isinstance(self.body, dict) else {}


def find_uuids(text):
    """In lower case, also those inside base64."""
    found = UUID.findall(text)
    for run in BASE64_RUN.findall(text):
        for shift in range(4):
            digits = run[shift:].replace("+", "-").replace("/", "_")
            # A length of 4n + 1 is none of base64.
            digits = digits[: len(digits) - (len(digits) % 4 == 1)]
            found += UUID.findall(base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4)).decode("latin-1"))
    return [uuid.lower() for uuid in found]


def spell(secret):
    """A secret as it is, in hex, and in base64 at each offset in a longer text, without the characters at its ends."""
    yield secret
    yield secret.encode().hex()
    for shift in range(3):
        padded = b"\0" * shift + secret.encode()
        yield base64.b64encode(padded).decode()[(shift * 8 + 5) // 6 : len(padded) * 8 // 6]


class Secrets:
    """Only the response that grants a name or a deployment may contain its token, once."""

    def __init__(self, secrets):
        spellings = [spelling for secret in [*secrets, SECRET_MARK] for spelling in spell(secret)]
        self.pattern = re.compile("|".join(map(re.escape, spellings)), re.IGNORECASE)
        self.tokens = set()

    def judge(self, exchange):
        text = exchange.text if len(exchange.text) < ASSET_LENGTH else ""
        if exchange.status == 201:
            granted = [exchange.fields.get(name) for name in ("reservationToken", "deploymentToken")]
            for token in filter(None, granted):
                self.tokens.add(token.lower())
                text = text.replace(token, "", 1)
        shown = f"{exchange.response_headers}\n{text}"
        if self.pattern.search(shown):
            yield "a secret in a response"
        if self.tokens.intersection(find_uuids(shown)):
            yield "the token of another response"


class Grants:
    """A live name has one reservation, and a generation of a lease has one holder."""

    def __init__(self):
        self.names = {}
        self.leases = {}

    def judge(self, exchange):
        if exchange.status >= 500 and exchange.method != "GET":
            # It may have released a name.
            self.names.clear()
        fields = exchange.fields
        pool = str(exchange.parameters.get("domain")).strip().lower()
        if isinstance(fields.get("freed"), dict):
            self.names.pop((pool, fields["freed"].get("subdomain")), None)
        token = fields.get("reservationToken")
        if exchange.status == 201 and token:
            # The same token is the same grant, replayed for an Idempotency-Key.
            if self.names.setdefault((pool, fields.get("subdomain")), token) != token:
                yield "a name was granted twice"
        for slot, lease in self.granted_leases(exchange):
            key = slot, lease.get("generation")
            if key in self.leases:
                yield f"generation {key[1]} of a lease was granted to {self.leases[key]} and to {lease.get('holder')}"
            self.leases[key] = lease.get("holder")

    @staticmethod
    def granted_leases(exchange):
        if exchange.status != 200:
            return []
        if (exchange.method, exchange.path) == ("PUT", "/lease/{slot}"):
            return [(exchange.parameters["slot"], exchange.fields)]
        results = exchange.fields.get("results", []) if exchange.path == "/leases/renew" else []
        return [(result["slot"], result["lease"]) for result in results if result.get("status") == 200]


class Tenants:
    """Each deployment and each reservation is of another tenant, whose mark is in what it names after itself."""

    def __init__(self):
        self.marks = 0
        # The marks of the tenants of ids and tokens.
        self.owners = {}

    def next_mark(self):
        self.marks += 1
        return f"Tn{self.marks}x"

    def find_owner(self, exchange):
        """The tenant whose resource the request is about; None: unclear."""
        if exchange.path.startswith(f"{DEPLOYMENTS}/{{id}}"):
            return self.owners.get(str(exchange.parameters.get("id")).lower())
        is_accepted = 200 <= exchange.status < 300
        return self.owners.get(str(exchange.sent.get("reservationToken")).lower()) if is_accepted else None

    def judge(self, exchange):
        fields = exchange.fields
        owner = self.find_owner(exchange)
        grants = [fields.get(name) for name in ("reservationToken", "deploymentToken") if fields.get(name)]
        if exchange.status == 201 and grants:
            named = TENANT_MARK.search(json.dumps(exchange.sent))
            mark = named[0] if named else self.next_mark()
            ids = [fields.get("id")] if "deploymentToken" in fields else []
            # A replay for an Idempotency-Key has its first owner.
            owner = [self.owners.setdefault(str(value).lower(), mark) for value in [*grants, *ids]][0]
        if owner is None:
            return
        if set(TENANT_MARK.findall(exchange.text)) - {owner}:
            yield "the name or the resources of another tenant"
        if any(self.owners.get(uuid, owner) != owner for uuid in find_uuids(exchange.text)):
            yield "the deployment or the token of another tenant"


class Rights:
    """A token never gets more than its rights: `access` is `write`, `read` or `none`; `slots` are prefixes and `holders` are
    patterns, None for all of them."""

    # Of requests that are rejected before the rights are checked.
    EARLY = (400, 401, 403, 405, 413, 415, 422, 428, 429, 431)
    # The registration of an account is 403 for each caller.
    PUBLIC = ("/healthz", "/api/v1/session", "/api/v1/records/acme-dns/register")

    def __init__(self, tokens):
        self.rights = {f"Bearer {each['token']}": each for each in tokens}

    def judge(self, exchange):
        rights = self.rights.get(exchange.headers.get("authorization"))
        if rights is None or exchange.method == "OPTIONS" or exchange.path in self.PUBLIC:
            return
        if rights["access"] == "none":
            if exchange.status not in (400, 401, 413, 429, 431):
                yield f"{exchange.status} for a token without rights"
            return
        shown = [*self.shown_slots(exchange.fields)] if exchange.status == 200 else []
        if not all(self.is_inside(rights, slot) for slot in shown):
            yield "the state of a slot outside the rights of a token"
        if exchange.status not in self.EARLY and not self.is_permitted(rights, exchange):
            yield f"{exchange.status} outside the rights of a token"

    @staticmethod
    def is_inside(rights, slot):
        prefixes = rights.get("slots")
        return prefixes is None or any(slot.startswith(prefix) for prefix in prefixes)

    @staticmethod
    def shown_slots(fields):
        entries = [*fields.get("leases", []), *fields.get("results", []), fields]
        return [entry["slot"] for entry in entries if "slot" in entry and entry.get("error") != "forbidden"]

    def is_permitted(self, rights, exchange):
        if exchange.path in ("/lease/{slot}", "/history/{slot}"):
            is_write = exchange.method in ("PUT", "DELETE")
            holder = exchange.sent.get("holder") or exchange.headers.get("x-holder")
            can_write = rights["access"] == "write" and self.is_own_holder(rights, holder)
            return self.is_inside(rights, exchange.parameters["slot"]) and (can_write or not is_write)
        if exchange.path == "/leases":
            slots = exchange.query.get("slot")
            return bool(slots) or self.is_inside(rights, exchange.query.get("prefix") or "")
        if exchange.path == "/leases/renew":
            return rights["access"] == "write" and self.is_own_holder(rights, exchange.sent.get("holder"))
        return True

    @staticmethod
    def is_own_holder(rights, holder):
        patterns = rights.get("holders")
        return patterns is None or any(
            holder == pattern or (pattern.endswith("*") and str(holder).startswith(pattern[:-1])) for pattern in patterns
        )


class Oracles:
    """`tokens`: the bearer tokens of the run with their rights."""

    def __init__(self, tokens):
        self.tenants = Tenants()
        self.all = [Secrets([each["token"] for each in tokens]), Grants(), self.tenants, Rights(tokens)]

    def judge(self, exchange):
        """Every violation of a response."""
        return [violation for oracle in self.all for violation in oracle.judge(exchange)]
