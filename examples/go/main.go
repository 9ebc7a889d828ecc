// A regional controller: one candidate in each region, of which the leader makes its region the primary one. The
// election is that of client-go; the lease witness takes the place of a Lease object.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"

	"pool.example/regional-controller/witnesslock"
)

type settings struct {
	witness, tokenFile, slot, region, resource string
	leaseDuration, renewDeadline, retryPeriod  time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.witness, "witness", "http://127.0.0.1:8787", "URL of the lease witness")
	flag.StringVar(&s.tokenFile, "token-file", "", "file with the bearer token of the witness; default: the variable WITNESS_TOKEN")
	flag.StringVar(&s.slot, "slot", "region-pair/primary", "slot of the lease")
	flag.StringVar(&s.region, "region", "region-a", "name of this region")
	flag.StringVar(&s.resource, "resource", "http://127.0.0.1:9000/primary", "URL of the resource that names the primary region")
	flag.DurationVar(&s.leaseDuration, "lease-duration", 15*time.Second, "time without a leader after a crash, in whole seconds")
	flag.DurationVar(&s.renewDeadline, "renew-deadline", 10*time.Second, "time after which client-go stops renewing")
	flag.DurationVar(&s.retryPeriod, "retry-period", 2*time.Second, "pause between two renewals")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, s); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	token, err := readToken(s.tokenFile)
	if err != nil {
		return err
	}
	lock, err := witnesslock.New(witnesslock.Config{
		URL: s.witness, Token: token, Slot: s.slot,
		Identity:       s.region + "_" + string(uuid.NewUUID()),
		RequestTimeout: s.leaseDuration / 3,
	})
	if err != nil {
		return err
	}
	primary := primary{
		url: s.resource, region: s.region, token: os.Getenv("RESOURCE_TOKEN"), interval: s.retryPeriod,
		client: &http.Client{Timeout: s.leaseDuration / 3},
	}
	config := leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   s.leaseDuration,
		RenewDeadline:   s.renewDeadline,
		RetryPeriod:     s.retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lock.Lead(primary.lead),
			OnStoppedLeading: func() {},
		},
	}
	slog.Info("candidate", "identity", lock.Identity())
	// A controller that has lost the lease becomes a standby again.
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			return err
		}
		elector.Run(ctx)
	}
	return nil
}

func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv("WITNESS_TOKEN"), nil
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// primary is the resource that names the primary region. It rejects a fencing token lower than the highest that it has
// seen, with 409.
type primary struct {
	url, region, token string
	interval           time.Duration
	client             *http.Client
}

var errFenced = errors.New("the resource has seen a newer fencing token")

// lead keeps this region the primary one until the tenure ends.
func (p *primary) lead(ctx context.Context) {
	tenure := witnesslock.TenureFrom(ctx)
	slog.Info("started leading", "token", tenure.Token())
	for ctx.Err() == nil && tenure.Remaining() > 0 {
		if err := p.send(ctx, http.MethodPut, tenure.Token()); err != nil {
			slog.Error("the resource was not written", "error", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.interval):
		}
	}
	// In the last third of the lease, so the context of the request is not that of the tenure.
	remaining := tenure.Remaining()
	if err := p.send(context.WithoutCancel(ctx), http.MethodDelete, tenure.Token()); err != nil {
		slog.Error("not stood down", "error", err.Error())
	}
	slog.Info("stopped leading", "token", tenure.Token(), "cause", context.Cause(ctx), "lateMs", -remaining.Milliseconds())
}

func (p *primary) send(ctx context.Context, method string, fence int64) error {
	request, err := http.NewRequestWithContext(ctx, method, p.url, strings.NewReader(p.region))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("X-Fencing-Token", strconv.FormatInt(fence, 10))
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode == http.StatusConflict {
		return errFenced
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("the resource responded %s", response.Status)
	}
	return nil
}
