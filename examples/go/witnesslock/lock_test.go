package witnesslock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The tests run in the fake time of synctest, with the elector of client-go.

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

func newLock(t *testing.T, network *network, identity string) *Lock {
	t.Helper()
	lock, err := New(Config{
		URL: "http://witness", Token: "token", Slot: "pair/primary", Identity: identity,
		HTTPClient: &http.Client{Transport: network},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// observer counts the tenures, and finds those that overlap.
type observer struct {
	mu      sync.Mutex
	leaders []string
	tokens  []int64
	faults  []string
}

func (o *observer) started(identity string, token int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.leaders) > 0 {
		o.faults = append(o.faults, fmt.Sprintf("%s started while %v led", identity, o.leaders))
	}
	if len(o.tokens) > 0 && token <= o.tokens[len(o.tokens)-1] {
		o.faults = append(o.faults, fmt.Sprintf("token %d after %v", token, o.tokens))
	}
	o.leaders = append(o.leaders, identity)
	o.tokens = append(o.tokens, token)
}

func (o *observer) stopped(identity string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaders = slices.DeleteFunc(o.leaders, func(leader string) bool { return leader == identity })
}

func (o *observer) current() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.leaders, ",")
}

func (o *observer) tenures() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tokens)
}

// candidate runs elections until its context ends.
type candidate struct {
	network *network
	cause   error
	done    chan struct{}
}

// run starts a candidate whose work takes stopTime to stop.
func (o *observer) run(ctx context.Context, t *testing.T, witness *fakeWitness, identity string, stopTime time.Duration) *candidate {
	c := &candidate{network: &network{witness: witness}, done: make(chan struct{})}
	lock := newLock(t, c.network, identity)
	work := func(ctx context.Context) {
		tenure := TenureFrom(ctx)
		o.started(identity, tenure.Token())
		<-ctx.Done()
		if tenure.Remaining() > 0 && errors.Is(context.Cause(ctx), ErrDeadline) {
			t.Errorf("%s ended with %s remaining", identity, tenure.Remaining())
		}
		time.Sleep(stopTime)
		c.cause = context.Cause(ctx)
		o.stopped(identity)
	}
	go func() {
		defer close(c.done)
		for ctx.Err() == nil {
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
				ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: lock.Lead(work),
					OnStoppedLeading: func() {},
				},
			})
		}
	}()
	return c
}

func TestRecordOfEachState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		witness := newFakeWitness()
		a, b := newLock(t, &network{witness: witness}, "a"), newLock(t, &network{witness: witness}, "b")
		a.Lead(func(context.Context) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, _, err := b.Get(ctx); !apierrors.IsNotFound(err) {
			t.Errorf("a slot that was never written: %v", err)
		}
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
		if err := a.Create(ctx, record); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond)
		held, raw, err := b.Get(ctx)
		if err != nil || held.HolderIdentity != "a" || held.LeaseDurationSeconds != 13 || held.AcquireTime.IsZero() {
			t.Errorf("a held lease: %+v, %v", held, err)
		}
		if err := a.Update(ctx, record); err != nil {
			t.Fatal(err)
		}
		if _, renewed, _ := b.Get(ctx); slices.Equal(raw, renewed) {
			t.Error("a renewal does not change the raw record")
		}
		b.Lead(func(context.Context) {})
		if err := b.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 15}); !apierrors.IsConflict(err) {
			t.Errorf("a lease of another holder: %v", err)
		}
		time.Sleep(leaseDuration)
		if expired, _, err := b.Get(ctx); err != nil || expired.HolderIdentity != "" {
			t.Errorf("an expired lease: %+v, %v", expired, err)
		}
	})
}

func TestInvalidConfiguration(t *testing.T) {
	_, err := New(Config{URL: "http://witness/lease", Identity: "ä", Slot: strings.Repeat("s", 507)})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"URL", "Token", "Slot", "Identity"} {
		if !strings.Contains(err.Error(), field+" ") {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}

func TestAcquiresOnlyWithLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		witness := newFakeWitness()
		lock := newLock(t, &network{witness: witness}, "a")
		err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15})
		if err == nil || !strings.Contains(err.Error(), "lock.Lead(run)") || len(witness.sent()) > 0 {
			t.Errorf("without Lead: %v", err)
		}
	})
}

// elect starts the leader "a" and the standby "b", whose work takes stopTime to stop, and then calls test.
func elect(t *testing.T, stopTime time.Duration, test func(witness *fakeWitness, seen *observer, a, b *candidate, stopA context.CancelFunc)) {
	synctest.Test(t, func(t *testing.T) {
		witness, seen := newFakeWitness(), &observer{}
		ctxA, stopA := context.WithCancel(t.Context())
		ctxB, stopB := context.WithCancel(t.Context())
		a := seen.run(ctxA, t, witness, "a", stopTime)
		time.Sleep(time.Second)
		b := seen.run(ctxB, t, witness, "b", stopTime)
		time.Sleep(time.Minute)
		if leader := seen.current(); leader != "a" {
			t.Fatalf("the leader is %q after a minute", leader)
		}
		test(witness, seen, a, b, stopA)
		stopA()
		stopB()
		<-a.done
		<-b.done
		// Work that the elector did not wait for.
		time.Sleep(leaseDuration)
		if len(seen.faults) > 0 {
			t.Error(seen.faults)
		}
	})
}

func TestReleasesAfterTheWorkHasStopped(t *testing.T) {
	elect(t, 3*time.Second, func(witness *fakeWitness, seen *observer, _, _ *candidate, stopA context.CancelFunc) {
		stopA()
		time.Sleep(2 * time.Second)
		if holder := witness.currentHolder(); holder != "a" {
			t.Errorf("the holder is %q while the work stops", holder)
		}
		time.Sleep(2*time.Second + retryPeriod)
		if leader := seen.current(); leader != "b" {
			t.Errorf("the leader is %q after the release", leader)
		}
	})
}

func TestKeepsTheLeaseIfTheWorkDoesNotStop(t *testing.T) {
	elect(t, renewDeadline+time.Second, func(witness *fakeWitness, _ *observer, _, _ *candidate, stopA context.CancelFunc) {
		stopA()
		time.Sleep(renewDeadline + time.Second/2)
		if slices.Contains(witness.sent(), http.MethodDelete) {
			t.Error("released before the work stopped")
		}
	})
}

func TestStandbyWaitsForTheRelease(t *testing.T) {
	elect(t, 0, func(witness *fakeWitness, seen *observer, _, b *candidate, _ context.CancelFunc) {
		witness.sent()
		time.Sleep(time.Minute)
		reads := 0
		for _, method := range witness.sent() {
			if method == http.MethodGet {
				reads++
			}
		}
		// Two reads in 22 to 25 s: one of the current lease, one that waits for 20 s.
		if reads > 8 {
			t.Errorf("the standby sent %d reads in a minute", reads)
		}
	})
}

func TestStandbyLeadsDespiteAProxyThatEndsWaits(t *testing.T) {
	limits := map[string]func(wait time.Duration) time.Duration{
		"half of each wait": func(wait time.Duration) time.Duration { return wait / 2 },
		"15 s":              func(time.Duration) time.Duration { return 15 * time.Second },
		"2 s":               func(time.Duration) time.Duration { return 2 * time.Second },
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			elect(t, 0, func(witness *fakeWitness, seen *observer, _, b *candidate, stopA context.CancelFunc) {
				b.network.set(func(request *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
					wait, err := time.ParseDuration(strings.TrimPrefix(request.Header.Get("Prefer"), "wait=") + "s")
					if err != nil {
						return pass()
					}
					ctx, cancel := context.WithTimeout(request.Context(), limit(wait))
					defer cancel()
					response, err := witness.respond(request.WithContext(ctx))
					if err != nil && request.Context().Err() == nil {
						return &http.Response{StatusCode: 504, Body: http.NoBody}, nil
					}
					return response, err
				})
				time.Sleep(10 * time.Minute)
				stopA()
				time.Sleep(2 * retryPeriod)
				if leader := seen.current(); leader != "b" {
					t.Errorf("the leader is %q two retry periods after the release", leader)
				}
			})
		})
	}
}

// Each fault ends the tenure of a, whose work needs almost the whole margin to stop.
func TestStopsBeforeTheLeaseExpires(t *testing.T) {
	faults := map[string]func(*http.Request, func() (*http.Response, error)) (*http.Response, error){
		"no connection": func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return nil, errNoResponse },
		"silence":       silent,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			elect(t, leaseDuration/marginFraction-time.Millisecond, func(_ *fakeWitness, seen *observer, a, _ *candidate, _ context.CancelFunc) {
				a.network.set(fault)
				time.Sleep(leaseDuration + retryPeriod)
				if leader := seen.current(); leader != "b" || !errors.Is(a.cause, ErrDeadline) {
					t.Errorf("the leader is %q, the cause %v", leader, a.cause)
				}
			})
		})
	}
}

// client-go measures RenewDeadline from the end of the last renewal and a pause, the witness from its arrival.
func TestSlowResponsesDoNotExtendTheTenure(t *testing.T) {
	elect(t, leaseDuration/marginFraction-time.Millisecond, func(_ *fakeWitness, seen *observer, a, _ *candidate, _ context.CancelFunc) {
		a.network.set(slow(defaultRequestTimeout - time.Millisecond))
		time.Sleep(defaultRequestTimeout)
		a.network.set(silent)
		time.Sleep(leaseDuration + retryPeriod + defaultRequestTimeout)
		if leader := seen.current(); leader != "b" {
			t.Errorf("the leader is %q", leader)
		}
	})
}

func TestLeaderDespiteSlowResponses(t *testing.T) {
	const latency = defaultRequestTimeout - time.Second/2
	synctest.Test(t, func(t *testing.T) {
		witness, seen := newFakeWitness(), &observer{}
		ctx, stop := context.WithCancel(t.Context())
		candidates := []*candidate{}
		for _, name := range []string{"a", "b"} {
			c := seen.run(ctx, t, witness, name, 0)
			c.network.set(slow(latency))
			candidates = append(candidates, c)
		}
		// A read and an acquisition.
		time.Sleep(2*latency + retryPeriod)
		for range 100 {
			time.Sleep(time.Second)
			if seen.current() == "" {
				t.Error("no leader")
			}
		}
		stop()
		for _, c := range candidates {
			<-c.done
		}
		if seen.tenures() != 1 || len(seen.faults) > 0 {
			t.Errorf("%d tenures, %v", seen.tenures(), seen.faults)
		}
	})
}

func TestCandidatesOfOneNameDoNotLeadTogether(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			witness, seen := newFakeWitness(), &observer{}
			ctx, stop := context.WithCancel(t.Context())
			candidates := []*candidate{}
			for range 2 {
				c := seen.run(ctx, t, witness, "a", 0)
				c.network.set(slow(time.Duration(random.Int64N(int64(time.Second)))))
				candidates = append(candidates, c)
			}
			time.Sleep(time.Minute)
			stop()
			for _, c := range candidates {
				<-c.done
			}
			if len(seen.faults) > 0 {
				t.Errorf("seed %d: %v", seed, seen.faults)
			}
		})
	}
}

func TestRenewalWithoutAResponseKeepsTheTenure(t *testing.T) {
	elect(t, 0, func(witness *fakeWitness, seen *observer, a, _ *candidate, _ context.CancelFunc) {
		for range 100 {
			a.network.set(func(request *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
				if request.Method == http.MethodGet {
					return pass()
				}
				a.network.set(nil)
				return dropResponse(request, pass)
			})
			time.Sleep(retryPeriod + time.Second)
		}
		if seen.tenures() != 1 {
			t.Errorf("%d tenures", seen.tenures())
		}
	})
}

func TestReleaseWithoutAResponse(t *testing.T) {
	elect(t, 0, func(witness *fakeWitness, seen *observer, a, _ *candidate, stopA context.CancelFunc) {
		a.network.set(func(request *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if request.Method == http.MethodDelete {
				return dropResponse(request, pass)
			}
			return pass()
		})
		witness.sent()
		stopA()
		<-a.done
		deletions := slices.DeleteFunc(witness.sent(), func(method string) bool { return method != http.MethodDelete })
		if len(deletions) != 1 {
			t.Errorf("sent %v", deletions)
		}
		time.Sleep(retryPeriod)
		if leader := seen.current(); leader != "b" {
			t.Errorf("the leader is %q", leader)
		}
	})
}

func TestAcquisitionWithoutAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		witness, seen := newFakeWitness(), &observer{}
		ctx, stop := context.WithCancel(t.Context())
		a := seen.run(ctx, t, witness, "a", 0)
		writes := 0
		a.network.set(func(request *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if request.Method == http.MethodPut {
				writes++
			}
			if request.Method == http.MethodPut && writes <= 2 {
				return dropResponse(request, pass)
			}
			return pass()
		})
		// Less than the lease: the candidate does not wait for the expiry of its own.
		time.Sleep(6 * retryPeriod)
		if leader := seen.current(); leader != "a" {
			t.Errorf("the leader is %q", leader)
		}
		stop()
		<-a.done
	})
}

// Another client evicts the holder, as after a step of the witness's clock.
func TestLostLeaseEndsTheTenureAtTheNextRenewal(t *testing.T) {
	elect(t, 0, func(witness *fakeWitness, seen *observer, a, _ *candidate, _ context.CancelFunc) {
		witness.mu.Lock()
		witness.change("c", time.Now(), time.Now().Add(time.Hour))
		witness.mu.Unlock()
		time.Sleep(retryPeriod + time.Second)
		if leader := seen.current(); leader != "" || !errors.Is(a.cause, ErrLost) {
			t.Errorf("the leader is %q, the cause %v", leader, a.cause)
		}
	})
}

// The clock of the witness is set forward.
func TestExpiredLeaseIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		witness, seen := newFakeWitness(), &observer{}
		ctx, stop := context.WithCancel(t.Context())
		a := seen.run(ctx, t, witness, "a", 0)
		time.Sleep(time.Minute)
		witness.mu.Lock()
		witness.expiresAt = time.Now()
		witness.mu.Unlock()
		time.Sleep(retryPeriod + time.Second)
		if holder := witness.currentHolder(); holder != "" || !errors.Is(a.cause, ErrLost) {
			t.Errorf("the holder is %q, the cause %v", holder, a.cause)
		}
		stop()
		<-a.done
	})
}

func TestStandbyHonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		witness := newFakeWitness()
		network := &network{witness: witness}
		network.set(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
			response := witness.response(503, `{"error":"overloaded","detail":"This slot is overloaded."}`, "")
			response.Header.Set("Retry-After", "30")
			return response, nil
		})
		lock := newLock(t, network, "a")
		_, _, err := lock.Get(t.Context())
		var status *StatusError
		if !errors.As(err, &status) || status.Code != "overloaded" || status.RetryAfter != 30*time.Second {
			t.Errorf("got %v", err)
		}
		network.set(nil)
		if _, _, err := lock.Get(t.Context()); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("sent a request before Retry-After: %v", err)
		}
		time.Sleep(30 * time.Second)
		if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) {
			t.Errorf("after Retry-After: %v", err)
		}
	})
}

func TestNoOverlapUnderRandomFaults(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			witness, seen := newFakeWitness(), &observer{}
			ctx, stop := context.WithCancel(t.Context())
			candidates := []*candidate{}
			for i := range 3 {
				stopTime := time.Duration(random.Int64N(int64(leaseDuration / marginFraction)))
				candidates = append(candidates, seen.run(ctx, t, witness, fmt.Sprint("candidate-", i), stopTime))
			}
			faults := []func(*http.Request, func() (*http.Response, error)) (*http.Response, error){
				silent, dropResponse, slow(time.Second), slow(2900 * time.Millisecond), slow(4 * time.Second), nil, nil,
			}
			for seen.tenures() < 100 {
				for _, candidate := range candidates {
					candidate.network.set(faults[random.IntN(len(faults))])
				}
				time.Sleep(time.Duration(random.Int64N(int64(2 * leaseDuration))))
			}
			stop()
			for _, candidate := range candidates {
				<-candidate.done
			}
			time.Sleep(leaseDuration)
			if len(seen.faults) > 0 {
				t.Errorf("seed %d: %v", seed, seen.faults)
			}
		})
	}
}
