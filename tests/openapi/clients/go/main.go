// Uses both generated clients against running services. Prints "done" if every response is the expected one.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"clients/allocationapi"
	"clients/leasewitness"
)

const (
	pool = "pool.test"
	name = "go-client"
	slot = "clients/go"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect(what string, status int, wanted int, body []byte) {
	if status != wanted {
		check(fmt.Errorf("%s: %d instead of %d: %s", what, status, wanted, body))
	}
}

func allocate(ctx context.Context) {
	client, err := allocationapi.NewClientWithResponses(os.Getenv("API_URL"))
	check(err)
	reserved, err := client.ReserveNameWithResponse(ctx, pool, nil, allocationapi.ReserveRequest{Subdomain: name})
	check(err)
	expect("reserve", reserved.StatusCode(), http.StatusCreated, reserved.Body)
	token, address := reserved.JSON201.ReservationToken, "203.0.113.10"
	committed, err := client.CommitNameWithResponse(ctx, pool, nil, allocationapi.CommitRequest{
		Subdomain:        name,
		ReservationToken: token,
		LoadBalancerIP:   &address,
		SovereignFQDN:    name + "." + pool,
	})
	check(err)
	if committed.JSON200 == nil && committed.JSON202 == nil {
		expect("commit", committed.StatusCode(), http.StatusOK, committed.Body)
	}
	released, err := client.ReleaseNameWithResponse(ctx, pool, nil,
		allocationapi.ReleaseRequest{Subdomain: name, ReservationToken: &token})
	check(err)
	if released.JSON200 == nil && released.JSON202 == nil {
		expect("release", released.StatusCode(), http.StatusOK, released.Body)
	}
}

func hold(ctx context.Context) {
	client, err := leasewitness.NewClientWithResponses(os.Getenv("WITNESS_URL"),
		leasewitness.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+os.Getenv("WITNESS_TOKEN"))
			return nil
		}))
	check(err)
	holder, other, op := "go", "other", leasewitness.Renew
	unused := leasewitness.WriteLeaseParamsIfNoneMatch("*")
	acquired, err := client.WriteLeaseWithResponse(ctx, slot,
		&leasewitness.WriteLeaseParams{IfNoneMatch: &unused}, leasewitness.PutLeaseRequest{Holder: &holder})
	check(err)
	expect("acquire", acquired.StatusCode(), http.StatusOK, acquired.Body)
	tag := acquired.HTTPResponse.Header.Get("ETag")
	rejected, err := client.WriteLeaseWithResponse(ctx, slot,
		&leasewitness.WriteLeaseParams{IfMatch: &tag}, leasewitness.PutLeaseRequest{Holder: &other})
	check(err)
	expect("acquire of another holder", rejected.StatusCode(), http.StatusPreconditionFailed, rejected.Body)
	if rejected.JSON412.Holder != holder {
		check(fmt.Errorf("the current holder is %q", rejected.JSON412.Holder))
	}
	renewed, err := client.WriteLeaseWithResponse(ctx, slot,
		&leasewitness.WriteLeaseParams{IfMatch: &tag}, leasewitness.PutLeaseRequest{Holder: &holder, Op: &op})
	check(err)
	expect("renew", renewed.StatusCode(), http.StatusOK, renewed.Body)
	if renewed.JSON200.Generation != 2 {
		check(fmt.Errorf("the generation is %d", renewed.JSON200.Generation))
	}
	released, err := client.ReleaseLeaseWithResponse(ctx, slot,
		&leasewitness.ReleaseLeaseParams{IfMatch: renewed.HTTPResponse.Header.Get("ETag"), XHolder: holder})
	check(err)
	expect("release of the lease", released.StatusCode(), http.StatusNoContent, released.Body)
}

func main() {
	ctx := context.Background()
	allocate(ctx)
	hold(ctx)
	fmt.Println("done")
}
