package witnesslock

import (
	"context"
	"errors"
	"sync"
	"time"
)

var (
	// ErrDeadline is the cause of the end of a tenure that was not renewed in time.
	ErrDeadline = errors.New("the lease was not renewed before the deadline of the tenure")
	// ErrLost is the cause of the end of a tenure whose lease expired, or has another holder.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased is the cause of the end of a tenure that the elector releases.
	ErrReleased = errors.New("the lease is being released")
)

// Tenure is the time from an acquisition of the lease to its end. A tenure does not begin again after its end.
type Tenure struct {
	token      int64
	acquiredAt string
	ctx        context.Context
	cancel     context.CancelCauseFunc
	// workDone is closed when the function given to Lead has returned, or if it is not called.
	workDone chan struct{}
	// isOver is true when the work has ended and the elector no longer leads. The lock's mutex protects it.
	isOver bool
	// renewal receives the result of the renewal in flight; nil: there is none. Only the elector reads it, in one goroutine.
	renewal chan error

	mu sync.Mutex
	// renewedAt is the time before the last successful write was sent, length the time from then to the deadline.
	renewedAt time.Time
	length    time.Duration
	timer     *time.Timer
}

func startTenure(token int64, acquiredAt string, renewedAt time.Time, length time.Duration) *Tenure {
	ctx, cancel := context.WithCancelCause(context.Background())
	t := &Tenure{token: token, acquiredAt: acquiredAt, ctx: ctx, cancel: cancel, workDone: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewedAt, t.length = renewedAt, length
	t.timer = time.AfterFunc(t.remaining(), t.checkDeadline)
	return t
}

// Token returns the fencing token: the generation of the write that started the tenure. It is constant during the tenure,
// above the tokens of all earlier tenures of the slot and below those of all later ones.
func (t *Tenure) Token() int64 { return t.token }

// Remaining returns the time to the deadline of the tenure; 0 or less: the tenure has ended. Compare it before each
// write: a process that was suspended resumes before its timers run.
func (t *Tenure) Remaining() time.Duration {
	t.mu.Lock()
	remaining := t.remaining()
	t.mu.Unlock()
	if remaining <= 0 {
		t.end(ErrDeadline)
	}
	if t.ctx.Err() != nil {
		return min(remaining, 0)
	}
	return remaining
}

// remaining compares the monotonic and the wall clock and uses the one that advanced more: on some systems, the
// monotonic clock stops while the machine is suspended.
func (t *Tenure) remaining() time.Duration {
	now := time.Now()
	return t.length - max(now.Sub(t.renewedAt), now.Round(0).Sub(t.renewedAt.Round(0)))
}

func (t *Tenure) checkDeadline() {
	if remaining := t.Remaining(); remaining > 0 {
		t.mu.Lock()
		t.timer.Reset(remaining)
		t.mu.Unlock()
	}
}

// renewed moves the deadline. It returns false if the tenure has ended; then the deadline stays.
func (t *Tenure) renewed(renewedAt time.Time, length time.Duration) bool {
	if t.Remaining() <= 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewedAt, t.length = renewedAt, length
	t.timer.Reset(t.remaining())
	return true
}

// waitForRenewal returns the result of the renewal in flight, if there is one.
func (t *Tenure) waitForRenewal(ctx context.Context) error {
	if t.renewal == nil {
		return nil
	}
	select {
	case err := <-t.renewal:
		t.renewal = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Tenure) end(cause error) { t.cancel(cause) }

type tenureKey struct{}

// TenureFrom returns the tenure of the context that Lead passes to its function, or nil.
func TenureFrom(ctx context.Context) *Tenure {
	tenure, _ := ctx.Value(tenureKey{}).(*Tenure)
	return tenure
}
