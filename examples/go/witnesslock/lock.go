// Package witnesslock is a lock for the leaderelection package of client-go that keeps its record in the lease witness
// instead of a Lease object of a Kubernetes cluster. Candidates in different clusters can use it.
package witnesslock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	defaultRequestTimeout = 5 * time.Second
	defaultWait           = 20 * time.Second
	// marginFraction of LeaseDuration is left between the end of the work's context and the earliest expiry.
	marginFraction = 3
	// A renewal delays the elector for this fraction of the time to the deadline at most.
	renewalFraction = 4
	// minWaited is the time after which a wait had reached the witness: what ended it is a limit of the path.
	minWaited = time.Second
	// minPathWait is the shortest wait that is tried on a path with such a limit.
	minPathWait = 3 * time.Second
)

// Config is the configuration of a Lock. The fields without a default are required.
type Config struct {
	// URL is the address of the witness, such as https://lease.example.org.
	URL string
	// Token is the bearer token.
	Token string
	// Slot is the name of the lease: 1 to 506 bytes, the same for all candidates.
	Slot string
	// Identity names the holder: 1 to 253 printable ASCII characters, unique to this process. Use a new one after each
	// start, because the witness treats two processes of one name as one holder.
	Identity string
	// RequestTimeout limits each request but an acquisition, which has two thirds of LeaseDuration: a later response could
	// not start a tenure. Default: 5 s. It should be a third of LeaseDuration, half of the time to the deadline: with slower
	// responses no renewal is in time, and after a longer wait for a lost one there is no time to read and renew.
	RequestTimeout time.Duration
	// Wait is the longest time that a read of a standby waits for the release or expiry of the lease, in whole seconds.
	// Default: 20 s. The witness can grant less. Negative: the standby polls every RetryPeriod.
	Wait time.Duration
	// HTTPClient sends the requests. Default: a client that follows no redirects. Its Transport must not repeat a PUT or
	// DELETE.
	HTTPClient *http.Client
	// Logger receives the events of the elector. Default: slog.Default().
	Logger *slog.Logger
}

// Lock implements resourcelock.Interface for one candidate. Its methods are for the elector; the controller uses Lead.
type Lock struct {
	witness slotClient
	wait    time.Duration
	// pathWait is the longest wait that the path to the witness allows, as far as it is known.
	pathWait time.Duration
	logger   *slog.Logger

	mu sync.Mutex
	// generation is that of the last response.
	generation int64
	// lastHolder is the holder that the elector saw last.
	lastHolder string
	// tenure is the current or the last one, or nil.
	tenure  *Tenure
	retryAt time.Time
	hasLead bool
	// isUncertain is true after an acquisition without a response, while a lease of this name may be its result.
	isUncertain bool
}

var _ resourcelock.Interface = (*Lock)(nil)

var leases = schema.GroupResource{Group: "lease-witness", Resource: "leases"}

var printable = regexp.MustCompile(`^[!-~]([ -~]{0,251}[!-~])?$`)

// New returns a lock, or an error that lists what is wrong with the configuration. It sends no request.
func New(config Config) (*Lock, error) {
	var invalid []error
	// With /lease, the requests would be for another slot.
	if parsed, err := url.Parse(config.URL); err != nil || parsed.Host == "" || parsed.RawQuery != "" || strings.Contains(parsed.Path+"/", "/lease/") {
		invalid = append(invalid, errors.New("URL must be an absolute http or https URL without a query and without /lease"))
	}
	if config.Token == "" {
		invalid = append(invalid, errors.New("Token is empty; set a bearer token of the witness"))
	}
	if config.Slot == "" || len(config.Slot) > 506 {
		invalid = append(invalid, errors.New("Slot must have 1 to 506 bytes"))
	}
	if !printable.MatchString(config.Identity) {
		invalid = append(invalid, errors.New("Identity must be 1 to 253 printable ASCII characters without a leading or trailing space"))
	}
	if len(invalid) > 0 {
		return nil, fmt.Errorf("witnesslock: %w", errors.Join(invalid...))
	}
	client := config.HTTPClient
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	lock := &Lock{
		witness: slotClient{
			url:     strings.TrimSuffix(config.URL, "/"),
			token:   config.Token,
			slot:    config.Slot,
			holder:  config.Identity,
			http:    client,
			timeout: config.RequestTimeout,
		},
		wait:   config.Wait,
		logger: config.Logger,
	}
	if lock.witness.timeout == 0 {
		lock.witness.timeout = defaultRequestTimeout
	}
	if lock.wait == 0 {
		lock.wait = defaultWait
	}
	lock.pathWait = lock.wait
	if lock.logger == nil {
		lock.logger = slog.Default()
	}
	return lock, nil
}

// Lead wraps OnStartedLeading. The context that run receives ends before the lease can expire while the process runs,
// when the lease is lost, and before it is released; context.Cause has the reason, TenureFrom the fencing token. The lock
// releases the lease only after run has returned.
func (l *Lock) Lead(run func(context.Context)) func(context.Context) {
	l.mu.Lock()
	l.hasLead = true
	l.mu.Unlock()
	return func(electorCtx context.Context) {
		// No tenure starts before this function has ended for the one before, so this is the tenure of the call.
		tenure, _ := l.state()
		if tenure == nil {
			return
		}
		ctx, cancel := context.WithCancelCause(context.WithValue(electorCtx, tenureKey{}, tenure))
		defer cancel(nil)
		defer context.AfterFunc(tenure.ctx, func() { cancel(context.Cause(tenure.ctx)) })()
		func() {
			defer close(tenure.workDone)
			if electorCtx.Err() == nil && tenure.Remaining() > 0 {
				run(ctx)
			}
		}()
		<-electorCtx.Done()
		tenure.end(context.Canceled)
		l.mu.Lock()
		tenure.isOver = true
		l.mu.Unlock()
	}
}

// Get reads the lease. For a standby that has already seen the holder, it waits until the lease is vacant, so that the
// elector acquires it at that moment and not after its next pause.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.checkRetryAfter(); err != nil {
		return nil, nil, err
	}
	current, err := l.witness.read(ctx)
	// The elector reads with a deadline only as the holder.
	if _, isHolder := ctx.Deadline(); err == nil && !isHolder && l.shouldWait(current) {
		current, err = l.waitUntilVacant(ctx)
	}
	if errors.Is(err, errNeverWritten) {
		return nil, nil, apierrors.NewNotFound(leases, l.witness.slot)
	}
	if err != nil {
		return nil, nil, l.failed(err)
	}
	l.observe(current)
	record := toRecord(current)
	if record.HolderIdentity == l.witness.holder && !l.isOwn(current) {
		// The elector acts on a lease with its name, and the witness grants one process the lease of another of this name.
		record.HolderIdentity += " (another process)"
	}
	l.mu.Lock()
	l.lastHolder = record.HolderIdentity
	l.mu.Unlock()
	return record, fmt.Appendf(nil, "%d %s", current.Generation, record.HolderIdentity), nil
}

// waitUntilVacant waits as a standby. A proxy can end a wait before the witness does: then the lock waits again at once, for
// a shorter time, which grows by a second with each complete wait.
func (l *Lock) waitUntilVacant(ctx context.Context) (lease, error) {
	for {
		wait, sentAt := min(l.wait, l.pathWait), time.Now()
		current, err := l.witness.waitUntilVacant(ctx, wait)
		ran := time.Since(sentAt)
		if err == nil && current.remaining > 0 {
			l.pathWait = wait + time.Second
		}
		if ran < minWaited || ctx.Err() != nil || !isOfPath(err) {
			return current, err
		}
		l.pathWait = max(minPathWait, ran*3/4).Truncate(time.Second)
	}
}

// isOfPath reports whether a proxy or a lost connection ended a request: the witness sends Retry-After with its 503.
func isOfPath(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status >= 500 && status.RetryAfter == 0
	}
	var transport *url.Error
	return errors.As(err, &transport) && !transport.Timeout()
}

// toRecord converts a lease to what the elector reads of it. A vacant lease has no holder, so that the elector acquires it
// at once: the clock of the witness has already decided that it expired. LeaseDurationSeconds is the rest of a held one,
// because the elector counts it from its own observation. The witness does not store RenewTime and LeaderTransitions.
func toRecord(current lease) *resourcelock.LeaderElectionRecord {
	if current.remaining <= 0 {
		return &resourcelock.LeaderElectionRecord{}
	}
	record := &resourcelock.LeaderElectionRecord{
		HolderIdentity:       current.Holder,
		LeaseDurationSeconds: int((current.remaining + time.Second - 1) / time.Second),
	}
	// For display only.
	if acquiredAt, err := time.Parse(time.RFC3339Nano, current.AcquiredAt); err == nil {
		record.AcquireTime = metav1.NewTime(acquiredAt)
	}
	return record
}

// Create acquires a slot that was never written.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, 0)
}

// Update acquires or renews the lease, or releases it if the record has no holder. After an error that is not a conflict,
// the write may have taken effect: the elector reads before it writes again.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	tenure, generation := l.state()
	if record.HolderIdentity == "" {
		return l.release(ctx, tenure)
	}
	return l.write(ctx, record, generation)
}

// RecordEvent logs an event of the elector.
func (l *Lock) RecordEvent(event string) {
	l.logger.Info("leader election", "slot", l.witness.slot, "identity", l.witness.holder, "event", event)
}

// Identity returns the holder name of this candidate.
func (l *Lock) Identity() string { return l.witness.holder }

// Describe names the lease in the log of the elector.
func (l *Lock) Describe() string { return l.witness.url + "/lease/" + l.witness.slot }

func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, generation int64) error {
	l.mu.Lock()
	hasLead, tenure := l.hasLead, l.current()
	l.mu.Unlock()
	if !hasLead {
		return errors.New("witnesslock: OnStartedLeading is not wrapped; set it to lock.Lead(run)")
	}
	duration := time.Duration(record.LeaseDurationSeconds) * time.Second
	length := duration - duration/marginFraction
	if tenure != nil {
		return l.renew(ctx, tenure, record.LeaseDurationSeconds, length)
	}
	sentAt := time.Now()
	granted, err := l.put(ctx, generation, "acquire", record.LeaseDurationSeconds, length)
	l.mu.Lock()
	l.isUncertain = err != nil && (l.isUncertain || !apierrors.IsConflict(err))
	l.mu.Unlock()
	if err != nil {
		return err
	}
	started := startTenure(granted.Generation, granted.AcquiredAt, sentAt, length)
	if started.Remaining() <= 0 {
		l.mu.Lock()
		l.isUncertain = true
		l.mu.Unlock()
		return errors.New("witnesslock: the response to the acquisition came after its deadline")
	}
	l.mu.Lock()
	l.tenure = started
	l.mu.Unlock()
	return nil
}

// renew extends the tenure. It does not wait for a slow response, which the next call returns: the elector pauses after
// each call, and with a slow response before the pause the next renewal would be late.
func (l *Lock) renew(ctx context.Context, tenure *Tenure, ttlSeconds int, length time.Duration) error {
	if err := tenure.waitForRenewal(ctx); err != nil {
		return err
	}
	remaining := tenure.Remaining()
	if remaining <= 0 {
		return fmt.Errorf("witnesslock: the tenure has ended: %w", context.Cause(tenure.ctx))
	}
	_, generation := l.state()
	renewal := make(chan error, 1)
	tenure.renewal = renewal
	// The elector ends the context after the call.
	ctx = context.WithoutCancel(ctx)
	go func() {
		sentAt := time.Now()
		// `renew` does not acquire an expired lease again, so a tenure has no gap.
		granted, err := l.put(ctx, generation, "renew", ttlSeconds, min(l.witness.timeout, remaining))
		if err == nil && granted.AcquiredAt != tenure.acquiredAt {
			tenure.end(ErrLost)
		}
		if err == nil && !tenure.renewed(sentAt, length) {
			err = fmt.Errorf("witnesslock: the tenure has ended: %w", context.Cause(tenure.ctx))
		}
		renewal <- err
	}()
	early, cancel := context.WithTimeout(ctx, remaining/renewalFraction)
	defer cancel()
	if err := tenure.waitForRenewal(early); early.Err() == nil {
		return err
	}
	return nil
}

func (l *Lock) put(ctx context.Context, generation int64, op string, ttlSeconds int, timeout time.Duration) (lease, error) {
	granted, err := l.witness.put(ctx, generation, op, ttlSeconds, timeout)
	if err != nil {
		return lease{}, l.failed(err)
	}
	if granted.Holder != l.witness.holder {
		return lease{}, fmt.Errorf("witnesslock: the response names another holder, %q", granted.Holder)
	}
	l.mu.Lock()
	l.generation = granted.Generation
	l.mu.Unlock()
	return granted, nil
}

// release ends the tenure, waits for its work and then deletes the lease. If the work does not return within the context
// of the elector, the lease stays until it expires.
func (l *Lock) release(ctx context.Context, tenure *Tenure) error {
	if tenure == nil {
		return apierrors.NewConflict(leases, l.witness.slot, errors.New("this process does not hold the lease"))
	}
	tenure.end(ErrReleased)
	select {
	case <-tenure.workDone:
	case <-ctx.Done():
		return errors.New("witnesslock: not released, because the function given to Lead has not returned; the lease will expire")
	}
	// Without its response, the generation is not known, and the lease stays until it expires.
	_ = tenure.waitForRenewal(ctx)
	_, generation := l.state()
	err := l.witness.delete(ctx, generation)
	if err == nil {
		return nil
	}
	var conflict *conflictError
	if errors.As(err, &conflict) {
		return l.failed(err)
	}
	// Without a response, the deletion may have taken effect. Read the lease and compare; do not repeat the write.
	current, readErr := l.witness.read(ctx)
	if readErr == nil && (current.Holder != l.witness.holder || current.AcquiredAt != tenure.acquiredAt) {
		return nil
	}
	return fmt.Errorf("witnesslock: whether the lease was released is unknown; if not, it will expire: %w", err)
}

// state returns the current or last tenure, or nil, and the generation of the last response.
func (l *Lock) state() (*Tenure, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenure, l.generation
}

// current returns the tenure of the elector's current term, or nil. The caller holds mu.
func (l *Lock) current() *Tenure {
	if l.tenure == nil || l.tenure.isOver {
		return nil
	}
	return l.tenure
}

// observe takes over the generation of a response, and ends the tenure if the lease is no longer that of the tenure.
func (l *Lock) observe(current lease) {
	l.mu.Lock()
	l.generation = current.Generation
	l.isUncertain = l.isUncertain && current.Holder == l.witness.holder
	tenure := l.tenure
	l.mu.Unlock()
	if tenure != nil && (current.Holder != l.witness.holder || current.AcquiredAt != tenure.acquiredAt) {
		tenure.end(ErrLost)
	}
}

// isOwn reports whether a lease with the name of this candidate is that of its current or last tenure, or of an acquisition
// without a response.
func (l *Lock) isOwn(current lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isUncertain || l.tenure != nil && current.AcquiredAt == l.tenure.acquiredAt
}

// shouldWait is false for a holder that the elector has not seen yet, so that OnNewLeader is not delayed, and for a lease
// of its own, which an acquisition without a response can leave.
func (l *Lock) shouldWait(current lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isHeldByOther := current.remaining > 0 && current.Holder != l.witness.holder
	return l.wait > 0 && isHeldByOther && current.Holder == l.lastHolder
}

// failed records what a failed request says about the lease and about the next request, and returns the error for the
// elector.
func (l *Lock) failed(err error) error {
	var conflict *conflictError
	if errors.As(err, &conflict) {
		l.observe(conflict.current)
		if tenure, _ := l.state(); tenure != nil && conflict.reason == "expired" {
			tenure.end(ErrLost)
		}
		return apierrors.NewConflict(leases, l.witness.slot, err)
	}
	var status *StatusError
	if errors.As(err, &status) {
		l.mu.Lock()
		l.retryAt = time.Now().Add(status.RetryAfter)
		l.mu.Unlock()
	}
	return fmt.Errorf("witnesslock: %w", err)
}

// checkRetryAfter returns an error while the witness has asked a standby to wait. A holder tries again until its deadline.
func (l *Lock) checkRetryAfter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := time.Until(l.retryAt); l.current() == nil && wait > 0 {
		return fmt.Errorf("witnesslock: the witness asked to retry in %s", wait.Round(time.Millisecond))
	}
	return nil
}
