package ipc

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"bridge/backend/core/bridge"
)

// Reconnector keeps one process connected to the home's current broker. It
// reconnects when the broker ends, and starts one if none runs (MSG-01). All fields
// are set before Run and never changed.
type Reconnector struct {
	Target Target
	Hello  Hello
	// Start is nil if this process must not start a broker.
	Start Starter
	// Joined is called on each new connection before any other use.
	Joined func(ctx context.Context, client *Client) error
	// Event receives pushed events; nil drops them.
	Event func(Event)

	mu      sync.Mutex // guards below
	current *Client
	changed chan struct{} // closed when current changes
	failure error         // why there is no connection
}

// Starter starts a background broker, or leaves it to a process that is already
// starting one. The returned channel closes when that start has ended: the broker
// has exited, or the other process is connected. ctx ends when the caller is
// connected or gives up. A second broker does no harm: the election lock prevents
// it from serving.
type Starter func(ctx context.Context) (ended <-chan struct{}, err error)

const (
	// takeoverJitter spreads the sessions that lose their broker together. Most
	// then find the broker of the first one, or wait for its start.
	takeoverJitter = 120 * time.Millisecond
	// startPatience is the timeout for a newly started broker.
	startPatience = 5 * time.Second
	// startsAtOnce bounds the broker starts of one attempt. It starts again only if
	// no broker remained after the first one's end.
	startsAtOnce = 3
	// winnerPatience is how long the search for another broker continues after a
	// started broker lost the election and ended.
	winnerPatience = 300 * time.Millisecond
	pollPause      = 15 * time.Millisecond
	// The pause between attempts grows, so that a home without a possible broker
	// costs little.
	firstRetryPause = 50 * time.Millisecond
	lastRetryPause  = 4 * time.Second
)

// Run keeps the connection until ctx ends.
func (r *Reconnector) Run(ctx context.Context) {
	retry := firstRetryPause
	for ctx.Err() == nil {
		client, reached, err := r.connect(ctx)
		if reached && (err == nil || bridge.CodeOf(err) == bridge.Unavailable) {
			retry = firstRetryPause // if the broker just died, the next one starts soon
		}
		if err != nil {
			r.set(nil, err)
			Pause(ctx, retry)
			retry = min(2*retry, lastRetryPause)
			continue
		}
		r.set(client, nil)
		r.follow(ctx, client)
		r.set(nil, bridge.Errorf(bridge.Unavailable, "the broker has just gone; another takes over"))
	}
	r.set(nil, bridge.WithCause(bridge.Unavailable, ctx.Err(), "this process is ending"))
}

// follow passes events on until the connection ends.
func (r *Reconnector) follow(ctx context.Context, client *Client) {
	for {
		select {
		case event, open := <-client.Events():
			if !open {
				return
			}
			if r.Event != nil {
				r.Event(event)
			}
		case <-ctx.Done():
			_ = client.Close() // it ends because this process ends
			return
		}
	}
}

// connect dials, starts a broker if none answers, and calls Joined. reached reports
// whether a broker answered, even if Joined failed.
func (r *Reconnector) connect(ctx context.Context) (client *Client, reached bool, err error) {
	client, err = Dial(ctx, r.Target, r.Hello)
	if bridge.CodeOf(err) == bridge.Unavailable && !errors.Is(err, ErrSilent) {
		Pause(ctx, rand.N(takeoverJitter)) //nolint:gosec // spreading, not a secret
		client, err = DialOrStart(ctx, r.Target, r.Hello, r.Start)
	}
	if err != nil {
		return nil, false, err
	}
	if r.Joined == nil {
		return client, true, nil
	}
	if err := r.Joined(ctx, client); err != nil {
		return nil, true, errors.Join(err, client.Close())
	}
	return client, true, nil
}

// DialOrStart dials, and starts a broker if none answers. start may be nil. It fails as Dial does.
func DialOrStart(ctx context.Context, target Target, hello Hello, start Starter) (*Client, error) {
	client, err := Dial(ctx, target, hello)
	if bridge.CodeOf(err) != bridge.Unavailable || errors.Is(err, ErrSilent) || start == nil {
		return client, err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for range startsAtOnce {
		ended, startErr := start(ctx)
		if startErr != nil {
			return nil, startErr
		}
		client, err = dialUntil(ctx, target, hello, ended)
		if bridge.CodeOf(err) != bridge.Unavailable || ctx.Err() != nil {
			return client, err
		}
	}
	return nil, bridge.WithCause(bridge.Unavailable, err, "Bridge is not running for this home, and one that was started ended at once: `bridge serve` says why")
}

// dialUntil dials until a broker answers, or until the started broker has ended and
// no other broker answers.
func dialUntil(ctx context.Context, target Target, hello Hello, ended <-chan struct{}) (*Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ended:
			Pause(ctx, winnerPatience)
			cancel()
		case <-ctx.Done():
		}
	}()
	return dialPatiently(ctx, target, hello)
}

// DialPatiently retries Dial until a starting broker answers. After patience it
// stops retrying; a broker that accepted the connection keeps its time to answer.
// It fails as [Dial] does.
func DialPatiently(ctx context.Context, target Target, hello Hello, patience time.Duration) (*Client, error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		client, err := Dial(ctx, target, hello)
		if bridge.CodeOf(err) != bridge.Unavailable || errors.Is(err, ErrSilent) || !Pause(patient, pollPause) {
			return client, err
		}
	}
}

func dialPatiently(ctx context.Context, target Target, hello Hello) (*Client, error) {
	for {
		client, err := Dial(ctx, target, hello)
		if bridge.CodeOf(err) != bridge.Unavailable {
			return client, err
		}
		if !Pause(ctx, pollPause) {
			return nil, err
		}
	}
}

// Pause waits for d and returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Reconnector) set(client *Client, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.failure = client, failure
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Client returns the current connection and waits for one if necessary. It fails with
// Unavailable if ctx ends first, or at once if only a person can fix the cause.
func (r *Reconnector) Client(ctx context.Context) (*Client, error) {
	for {
		r.mu.Lock()
		client, failure := r.current, r.failure
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		if client != nil {
			return client, nil
		}
		if failure != nil && (bridge.CodeOf(failure) != bridge.Unavailable || errors.Is(failure, ErrSilent)) {
			return nil, failure // waiting fixes neither a damaged store nor a stopped broker
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if failure != nil {
				return nil, failure
			}
			return nil, bridge.Errorf(bridge.Unavailable, "no broker answered in time")
		}
	}
}

// Do runs work on the current connection. If that connection ends meanwhile, it
// runs work again on the next one, until ctx ends. work must be safe to repeat: the
// broker may have executed the first run. It fails with the error of work, and as
// [Reconnector.Client] does without a connection.
func (r *Reconnector) Do(ctx context.Context, work func(*Client) error) error {
	for {
		client, err := r.Client(ctx)
		if err != nil {
			return err
		}
		err = work(client)
		if bridge.CodeOf(err) != bridge.Unavailable || !ended(client) || ctx.Err() != nil {
			return err
		}
		r.dropped(client)
	}
}

func ended(client *Client) bool {
	select {
	case <-client.Done():
		return true
	default:
		return false
	}
}

// dropped forgets an ended connection before Run notices the end.
func (r *Reconnector) dropped(client *Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == client {
		r.current = nil
	}
}
