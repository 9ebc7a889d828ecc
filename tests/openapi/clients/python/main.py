"""Uses both generated clients against running services. Prints "done" if every response is the expected one."""

import os
from http import HTTPStatus

import allocation_api
import lease_witness
from allocation_api.api.allocation import commit_name, release_name, reserve_name
from allocation_api.models import CommitRequest, ReleaseRequest, ReserveRequest
from lease_witness.api.lease import release_lease, write_lease
from lease_witness.models import PutLeaseRequest, PutLeaseRequestOp, WriteLeaseIfNoneMatch

POOL = "pool.test"
NAME = "python-client"
SLOT = "clients/python"


def expect(what, response, *wanted):
    assert response.status_code in wanted, f"{what}: {response.status_code} {response.content}"
    return response.parsed


def allocate(client):
    reserved = expect(
        "reserve",
        reserve_name.sync_detailed(POOL, client=client, body=ReserveRequest(subdomain=NAME)),
        HTTPStatus.CREATED,
    )
    token = reserved.reservation_token
    commit = CommitRequest(
        subdomain=NAME, reservation_token=token, load_balancer_ip="203.0.113.10", sovereign_fqdn=f"{NAME}.{POOL}"
    )
    committed = commit_name.sync_detailed(POOL, client=client, body=commit)
    assert expect("commit", committed, HTTPStatus.OK, HTTPStatus.ACCEPTED).sovereign_fqdn == f"{NAME}.{POOL}"
    release = ReleaseRequest(subdomain=NAME, reservation_token=token)
    released = release_name.sync_detailed(POOL, client=client, body=release)
    assert expect("release", released, HTTPStatus.OK, HTTPStatus.ACCEPTED).freed.subdomain == NAME


def hold(client):
    first = write_lease.sync_detailed(
        SLOT, client=client, body=PutLeaseRequest(holder="python"), if_none_match=WriteLeaseIfNoneMatch.VALUE_0
    )
    assert expect("acquire", first, HTTPStatus.OK).holder == "python"
    tag = first.headers["ETag"]
    other = write_lease.sync_detailed(SLOT, client=client, body=PutLeaseRequest(holder="other"), if_match=tag)
    assert expect("acquire of another holder", other, HTTPStatus.PRECONDITION_FAILED).holder == "python"
    renewal = PutLeaseRequest(holder="python", op=PutLeaseRequestOp.RENEW)
    renewed = write_lease.sync_detailed(SLOT, client=client, body=renewal, if_match=tag)
    assert expect("renew", renewed, HTTPStatus.OK).generation == 2
    released = release_lease.sync_detailed(SLOT, client=client, if_match=renewed.headers["ETag"], x_holder="python")
    expect("release of the lease", released, HTTPStatus.NO_CONTENT)


allocate(allocation_api.Client(base_url=os.environ["API_URL"]))
hold(lease_witness.AuthenticatedClient(base_url=os.environ["WITNESS_URL"], token=os.environ["WITNESS_TOKEN"]))
print("done")
