package witnesslock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeWitness is a witness with one slot, in memory. It has the rules of the real one that the lock depends on; the
// test of the workspace runs the lock against the real one.
type fakeWitness struct {
	mu         sync.Mutex
	holder     string
	acquiredAt time.Time
	expiresAt  time.Time
	generation int64
	changed    chan struct{}
	requests   []string
}

func newFakeWitness() *fakeWitness { return &fakeWitness{changed: make(chan struct{})} }

var errNoResponse = errors.New("no response")

// network is the way of one candidate to the witness.
type network struct {
	witness *fakeWitness
	mu      sync.Mutex
	// intercept handles the next requests instead of the network. Nil: they pass.
	intercept func(request *http.Request, pass func() (*http.Response, error)) (*http.Response, error)
}

func (n *network) set(intercept func(*http.Request, func() (*http.Response, error)) (*http.Response, error)) {
	n.mu.Lock()
	n.intercept = intercept
	n.mu.Unlock()
}

// silent accepts requests and never responds.
func silent(request *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// dropResponse lets the write take effect, and loses the response.
func dropResponse(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
	if response, err := pass(); err == nil {
		response.Body.Close()
	}
	return nil, errNoResponse
}

// slow delays each response.
func slow(delay time.Duration) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
	return func(request *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		response, err := pass()
		select {
		case <-time.After(delay):
			return response, err
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
}

func (n *network) RoundTrip(request *http.Request) (*http.Response, error) {
	n.mu.Lock()
	intercept := n.intercept
	n.mu.Unlock()
	pass := func() (*http.Response, error) { return n.witness.respond(request) }
	if intercept != nil {
		return intercept(request, pass)
	}
	return pass()
}

func (w *fakeWitness) respond(request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, request.Method)
	if request.Header.Get("Authorization") != "Bearer token" {
		return w.response(401, `{"error":"unauthorized"}`, ""), nil
	}
	if request.Method == http.MethodGet {
		if request.URL.Query().Get("until") == "vacant" {
			if err := w.waitUntilVacant(request); err != nil {
				return nil, err
			}
		}
		if w.generation == 0 {
			return w.response(404, `{"error":"not-found","detail":"This slot was never written."}`, ""), nil
		}
		return w.response(200, w.body(), ""), nil
	}
	generation, _ := strconv.ParseInt(request.Header.Get("If-Match"), 10, 64)
	client := request.Header.Get("X-Holder")
	isHeld := w.holder != "" && time.Now().Before(w.expiresAt)
	switch {
	case isHeld && w.holder != client:
		return w.response(412, w.body(), "held"), nil
	case generation != w.generation:
		return w.response(412, w.body(), "generation"), nil
	}
	if request.Method == http.MethodDelete {
		w.change("", time.Time{}, time.Time{})
		return w.response(204, "", ""), nil
	}
	var body struct {
		Op         string
		TTLSeconds int
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Op == "renew" && w.holder != client {
		return w.response(412, w.body(), "not-holder"), nil
	}
	if body.Op == "renew" && !isHeld {
		return w.response(412, w.body(), "expired"), nil
	}
	acquiredAt := w.acquiredAt
	if !isHeld {
		acquiredAt = time.Now()
	}
	w.change(client, acquiredAt, time.Now().Add(time.Duration(body.TTLSeconds)*time.Second))
	return w.response(200, w.body(), ""), nil
}

func (w *fakeWitness) change(holder string, acquiredAt, expiresAt time.Time) {
	w.holder, w.acquiredAt, w.expiresAt = holder, acquiredAt, expiresAt
	w.generation++
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *fakeWitness) waitUntilVacant(request *http.Request) error {
	seconds, err := strconv.Atoi(strings.TrimPrefix(request.Header.Get("Prefer"), "wait="))
	if err != nil {
		return fmt.Errorf("invalid Prefer: %w", err)
	}
	end := time.After(time.Duration(seconds) * time.Second)
	for w.holder != "" && time.Now().Before(w.expiresAt) {
		changed, expiry := w.changed, time.After(time.Until(w.expiresAt))
		w.mu.Unlock()
		select {
		case <-changed:
		case <-expiry:
		case <-end:
			w.mu.Lock()
			return nil
		case <-request.Context().Done():
			w.mu.Lock()
			return request.Context().Err()
		}
		w.mu.Lock()
	}
	return nil
}

func (w *fakeWitness) body() string {
	acquiredAt := ""
	if w.holder != "" {
		acquiredAt = w.acquiredAt.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf(`{"holder":%q,"acquiredAt":%q,"generation":%d}`, w.holder, acquiredAt, w.generation)
}

func (w *fakeWitness) response(status int, body, conflict string) *http.Response {
	header := http.Header{}
	if w.holder != "" {
		header.Set("Lease-Remaining-Ms", strconv.FormatInt(max(0, time.Until(w.expiresAt).Milliseconds()), 10))
	}
	if conflict != "" {
		header.Set("Lease-Conflict", conflict)
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewBufferString(body))}
}

func (w *fakeWitness) currentHolder() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !time.Now().Before(w.expiresAt) {
		return ""
	}
	return w.holder
}

func (w *fakeWitness) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests := w.requests
	w.requests = nil
	return requests
}
