package witnesslock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const maxBodyBytes = 64 << 10

// lease is a lease as the witness returns it. In a released slot, every field except the generation is empty.
type lease struct {
	Holder     string `json:"holder"`
	AcquiredAt string `json:"acquiredAt"`
	Generation int64  `json:"generation"`

	// remaining is the time to expiry by the clock of the witness, measured when it sent the response. 0: no client holds
	// the lease.
	remaining time.Duration
}

// StatusError is a response of the witness that is neither a lease nor a conflict. After a write, a status of 500 or more
// does not say whether the write took effect.
type StatusError struct {
	Status int
	// Code and Detail are the fields of the error body. They are empty if the response has another body.
	Code, Detail string
	// RetryAfter is the value of Retry-After, or 0.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the lease witness responded %d %s: %s", e.Status, e.Code, e.Detail)
}

// conflictError is a 412: the write had no effect. The response has the current lease.
type conflictError struct {
	reason  string
	current lease
}

func (e *conflictError) Error() string {
	return fmt.Sprintf("not written (%s): the holder is %q, the generation %d", e.reason, e.current.Holder, e.current.Generation)
}

var errNeverWritten = errors.New("the slot was never written")

// slotClient sends the requests for one slot. No request is repeated.
type slotClient struct {
	url, token, slot, holder string
	http                     *http.Client
	timeout                  time.Duration
}

func (c *slotClient) read(ctx context.Context) (lease, error) {
	return c.send(ctx, http.MethodGet, "", nil, nil, c.timeout)
}

// waitUntilVacant returns when no client holds the lease, at the latest after wait. The witness can grant less.
func (c *slotClient) waitUntilVacant(ctx context.Context, wait time.Duration) (lease, error) {
	header := http.Header{"Prefer": {fmt.Sprintf("wait=%d", int(wait/time.Second))}}
	return c.send(ctx, http.MethodGet, "?until=vacant", header, nil, wait+c.timeout)
}

// put acquires or renews the lease by compare-and-set. op is "acquire" or "renew".
func (c *slotClient) put(ctx context.Context, generation int64, op string, ttlSeconds int, timeout time.Duration) (lease, error) {
	body, err := json.Marshal(map[string]any{"op": op, "ttlSeconds": ttlSeconds})
	if err != nil {
		return lease{}, err
	}
	return c.send(ctx, http.MethodPut, "", c.writeHeader(generation), body, timeout)
}

func (c *slotClient) delete(ctx context.Context, generation int64) error {
	_, err := c.send(ctx, http.MethodDelete, "", c.writeHeader(generation), nil, c.timeout)
	return err
}

func (c *slotClient) writeHeader(generation int64) http.Header {
	return http.Header{"If-Match": {strconv.FormatInt(generation, 10)}, "X-Holder": {c.holder}}
}

func (c *slotClient) send(ctx context.Context, method, query string, header http.Header, body []byte, timeout time.Duration) (lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address := c.url + "/lease/" + url.PathEscape(c.slot) + query
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return lease{}, err
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return lease{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return lease{}, err
	}
	return parseResponse(method, response, text)
}

func parseResponse(method string, response *http.Response, text []byte) (lease, error) {
	switch response.StatusCode {
	case http.StatusNoContent:
		return lease{}, nil
	case http.StatusOK, http.StatusPreconditionFailed:
		var current lease
		if err := json.Unmarshal(text, &current); err != nil {
			return lease{}, fmt.Errorf("the response is not a lease; check the URL of the witness: %w", err)
		}
		remainingMs, _ := strconv.ParseInt(response.Header.Get("Lease-Remaining-Ms"), 10, 64)
		current.remaining = time.Duration(remainingMs) * time.Millisecond
		if response.StatusCode == http.StatusOK {
			return current, nil
		}
		return lease{}, &conflictError{reason: response.Header.Get("Lease-Conflict"), current: current}
	}
	var problem struct{ Error, Detail string }
	// Another body, such as that of a proxy, leaves the fields empty.
	_ = json.Unmarshal(text, &problem)
	if response.StatusCode == http.StatusNotFound && method == http.MethodGet && problem.Detail == "This slot was never written." {
		return lease{}, errNeverWritten
	}
	retryAfterSeconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return lease{}, &StatusError{
		Status:     response.StatusCode,
		Code:       problem.Error,
		Detail:     problem.Detail,
		RetryAfter: time.Duration(retryAfterSeconds) * time.Second,
	}
}
