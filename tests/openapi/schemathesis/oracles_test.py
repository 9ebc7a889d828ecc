"""Every oracle finds its violation in planted responses, and accepts what is correct."""

import base64
import json
import unittest

from oracles import SECRET_MARK, Exchange, Oracles

FULL, READER, LIMITED, EXPIRED = "full-token", "reader-token", "limited-token", "expired-token"
TOKENS = [
    {"token": FULL, "access": "write"},
    {"token": READER, "access": "read"},
    {"token": LIMITED, "access": "write", "slots": ["eu/"], "holders": ["region-a/*"]},
    {"token": EXPIRED, "access": "none"},
]
ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
RESERVE, RELEASE = "/api/v1/pool/{domain}/reserve", "/api/v1/pool/{domain}/release"
DEPLOYMENTS = "/api/v1/deployments"


def answer(method, path, status, shown, **fields):
    return Exchange(method, path, status, text=shown if isinstance(shown, str) else json.dumps(shown), **fields)


def reserve(token, subdomain="acme", **fields):
    shown = {"subdomain": subdomain, "reservationToken": token}
    return answer("POST", RESERVE, 201, shown, parameters={"domain": "pool.test"}, **fields)


def create(token, deployment, mark):
    shown = {"id": deployment, "deploymentToken": token}
    return answer("POST", DEPLOYMENTS, 201, shown, body={"orgName": f"Acme {mark}"})


def read(shown, deployment=ONE):
    return answer("GET", f"{DEPLOYMENTS}/{{id}}", 200, shown, parameters={"id": deployment})


def lease(method, slot, status=200, shown="", token=FULL, generation=1, **fields):
    headers = {"authorization": f"Bearer {token}", "x-holder": fields.pop("holder", "region-a/0")}
    shown = shown or {"holder": "region-a/0", "generation": generation}
    return answer(method, "/lease/{slot}", status, shown, parameters={"slot": slot}, headers=headers, **fields)


def leases(shown, query, token=LIMITED):
    return answer("GET", "/leases", 200, shown, query=query, headers={"authorization": f"Bearer {token}"})


def renew(results, holder="region-a/0", token=FULL, status=200):
    headers = {"authorization": f"Bearer {token}"}
    return answer("POST", "/leases/renew", status, {"results": results}, body={"holder": holder}, headers=headers)


FREED = answer("DELETE", RELEASE, 200, {"freed": {"subdomain": "acme"}}, parameters={"domain": "pool.test"})
LEASE = {"holder": "region-a/0", "generation": 1}
FORBIDDEN = {"slot": "us/1", "error": "forbidden"}

VIOLATIONS = {
    "a secret in a response": [
        [read(SECRET_MARK)],
        [read(SECRET_MARK.encode().hex())],
        [read(base64.b64encode(b"x" + SECRET_MARK.encode() + b"yz").decode())],
        [Exchange("GET", "/", 200, response_headers=f"X-Token: {FULL}")],
    ],
    "the token of another response": [
        [reserve(ONE), read({"error": ONE})],
        [reserve(ONE), read(base64.b64encode(f"?{ONE}".encode()).decode())],
        [answer("POST", RESERVE, 201, {"reservationToken": ONE, "again": ONE})],
    ],
    "a name was granted twice": [[reserve(ONE), reserve(TWO)], [reserve(ONE), FREED, reserve(TWO), reserve(ONE)]],
    "generation 1 of a lease was granted to region-a/0 and to region-a/0": [
        [lease("PUT", "a"), lease("PUT", "a")],
        [lease("PUT", "a"), renew([{"slot": "a", "status": 200, "lease": LEASE}])],
    ],
    "the name or the resources of another tenant": [
        [create(TWO, ONE, "Tn1x"), read({"machines": "Tn2x"})],
        [
            reserve(ONE, body={"createdBy": "Tn1x"}),
            answer("POST", RELEASE, 200, {"createdBy": "Tn2x"}, body={"reservationToken": ONE}),
        ],
    ],
    "the deployment or the token of another tenant": [
        [
            create("33333333-3333-4333-8333-333333333333", ONE, "Tn1x"),
            create("44444444-4444-4444-8444-444444444444", TWO, "Tn2x"),
            read({"former": TWO}),
        ]
    ],
    "the state of a slot outside the rights of a token": [
        [leases({"leases": [{"slot": "us/1"}]}, {"prefix": "eu/"})],
        [renew([{"slot": "us/1", "error": "conflict"}], token=LIMITED)],
    ],
    "200 outside the rights of a token": [
        [lease("PUT", "eu/1", token=READER)],
        [lease("GET", "us/1", token=LIMITED)],
        [lease("PUT", "eu/1", token=LIMITED, holder="region-b")],
        [leases({"leases": []}, {"prefix": "e"})],
        [renew([], token=READER)],
        [renew([], holder="region-b", token=LIMITED)],
    ],
    "412 outside the rights of a token": [[lease("PUT", "us/1", 412, token=LIMITED)]],
    "404 outside the rights of a token": [[lease("GET", "us/1", 404, {"error": "not-found"}, token=LIMITED)]],
    "200 for a token without rights": [[lease("GET", "eu/1", token=EXPIRED)]],
}

CORRECT = [
    [reserve(ONE), reserve(ONE), FREED, reserve(TWO), reserve(ONE.replace("1", "3"), "other")],
    [create(TWO, ONE, "Tn1x"), read({"id": ONE, "orgName": "Acme Tn1x"})],
    [lease("PUT", "a"), lease("PUT", "a", generation=2), lease("PUT", "b")],
    [lease("PUT", "a"), renew([{"slot": "a", "status": 412, "lease": LEASE}])],
    [lease("GET", "eu/1", token=LIMITED), lease("PUT", "us/1", 403, {"error": "forbidden"}, token=LIMITED)],
    [leases({"leases": [{"slot": "eu/1"}, FORBIDDEN]}, {"slot": ["eu/1", "us/1"]})],
    [renew([FORBIDDEN, {"slot": "eu/1", "status": 200, "lease": LEASE}], token=LIMITED)],
    [lease("GET", "eu/1", 401, {"error": "unauthorized"}, token=EXPIRED)],
]


class OraclesTest(unittest.TestCase):
    def test_violations(self):
        for expected, sequences in VIOLATIONS.items():
            for number, (*before, last) in enumerate(sequences):
                with self.subTest(expected, number=number):
                    oracles = Oracles(TOKENS)
                    self.assertEqual([violation for each in before for violation in oracles.judge(each)], [])
                    self.assertEqual(oracles.judge(last), [expected])

    def test_correct_responses(self):
        for number, sequence in enumerate(CORRECT):
            with self.subTest(number=number):
                oracles = Oracles(TOKENS)
                self.assertEqual([violation for each in sequence for violation in oracles.judge(each)], [])


if __name__ == "__main__":
    unittest.main()
