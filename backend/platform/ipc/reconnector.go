package ipc

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"bridge/backend/core/bridge"
)

// Reconnector keeps one process connected to whichever broker serves the home: it
// connects again when the broker dies, and starts one where none runs (MSG-01).
// All fields are set before Run and not changed after it.
type Reconnector struct {
	Target Target
	Hello  Hello
	// Start is nil where starting a broker is not this process's business.
	Start Starter
	// Joined is called on each new connection before anyone else uses it.
	Joined func(ctx context.Context, client *Client) error
	// Event receives what the broker pushes; nil drops it.
	Event func(Event)

	mu      sync.Mutex // guards below
	current *Client
	changed chan struct{} // closed when current changes
	failure error         // why there is no connection
}

// Starter starts a background broker, or leaves the start to a process that does so at
// this moment. It returns a channel that is closed when that start has ended: the started
// broker is gone, or the other process has what it wanted. ctx ends when the caller is
// connected or gives up. A second broker started at the same moment does no harm: the
// election lock keeps it from serving.
type Starter func(ctx context.Context) (ended <-chan struct{}, err error)

const (
	// takeoverJitter spreads the sessions that lose their broker together: most
	// that come after the first then find its broker, or wait for its start.
	takeoverJitter = 120 * time.Millisecond
	// startPatience is how long a broker that was just started may take.
	startPatience = 5 * time.Second
	// startsAtOnce bounds how often one attempt starts a broker: again only when
	// the first one's end left nobody behind.
	startsAtOnce = 3
	// winnerPatience is how long a started broker that has ended, because another
	// won the election, is followed by the look for that other.
	winnerPatience = 300 * time.Millisecond
	pollPause      = 15 * time.Millisecond
	// The pause between attempts grows, so that a home where no broker can run
	// costs little.
	firstRetryPause = 50 * time.Millisecond
	lastRetryPause  = 4 * time.Second
)

// Run keeps connected until ctx ends.
func (r *Reconnector) Run(ctx context.Context) {
	retry := firstRetryPause
	for ctx.Err() == nil {
		client, reached, err := r.connect(ctx)
		if reached && (err == nil || bridge.CodeOf(err) == bridge.Unavailable) {
			retry = firstRetryPause // if it died under us, the next one is near
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
			_ = client.Close() // it ends because we do
			return
		}
	}
}

// connect dials, starts a broker if nobody answers, and joins. reached reports
// whether a broker answered, also when joining it failed.
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

// DialOrStart dials, and starts a broker where nobody answers. start may be nil.
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
	return nil, bridge.WithCause(bridge.Unavailable, err, "no broker is running for this home, and one that was started ended at once: `bridge serve` says why")
}

// dialUntil dials until somebody answers, or until the broker that was started
// has ended and no other answers in its place.
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

// DialPatiently dials until a broker that is just starting answers. After
// patience it dials no more; a broker that has taken the call still has its time
// to answer.
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

// Pause waits and reports whether ctx still lives.
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

// Client returns the present connection, waiting for one until ctx ends or
// something that only a person can mend keeps every broker away.
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
			return nil, failure // waiting mends neither a damaged store nor a stopped broker
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

// Do runs work on the present connection and, when that connection ends under
// it, again on the next one, until ctx ends. work must be safe to repeat: the
// first run may have been carried out.
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

// dropped forgets a connection that was seen to have ended before Run saw it.
func (r *Reconnector) dropped(client *Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == client {
		r.current = nil
	}
}
