package witnesslock_test

import (
	"context"
	"log"
	"os"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"pool.example/regional-controller/witnesslock" // 1: instead of resourcelock
)

func run(ctx context.Context) {
	log.Printf("leading with token %d", witnesslock.TenureFrom(ctx).Token())
	<-ctx.Done()
}

func stopped() { os.Exit(0) }

// The three numbered lines differ from an election with a Lease object.
func Example() {
	ctx, identity := context.Background(), "region-a_4f1c"
	lock, err := witnesslock.New(witnesslock.Config{ // 2: instead of resourcelock.New
		URL: "https://lease.example.org", Token: os.Getenv("WITNESS_TOKEN"), Slot: "region-pair/primary", Identity: identity,
	})
	if err != nil {
		log.Fatal(err)
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lock.Lead(run), // 3: instead of run
			OnStoppedLeading: stopped,
		},
	})
}
