// Package remotejobs does jobs for paired PCs, and has paired PCs do jobs for this one,
// over whichever transport brings requests and answers. The executor asks the owner's
// policy anew for each request, counts them, and hands to the jobs of this PC what is
// allowed; the requester asks, and keeps up with what was begun. The rules are those of
// remote.
package remotejobs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/lifecycle"
)

// Options say what an executor works with. All are required but Git and Knows.
type Options struct {
	Owned
	Transport pairing.Transport
	// Policy is what the owner of this PC allows now.
	Policy func() (remote.Policy, error)
	// CheckRoot refuses a folder of the policy in which no job may write (SEC-09): it allows
	// nothing.
	CheckRoot func(folder string) error
	// Knows reports whether the PC of that identity is paired with this one, or in its
	// team; nil where all are.
	Knows func(pc string) bool
	Log   *slog.Logger
}

const (
	// maxAtOnce is how many requests of one PC are worked on at a time. What comes
	// above is not answered: whoever asks so much does not wait for answers.
	maxAtOnce = 32
	// patience is for how long one request is worked on, and its answer sent.
	patience = 15 * time.Second
)

// Executor does for paired PCs what they ask for and may.
type Executor struct {
	opts Options
	look lifecycle.Signal // who is known may have changed

	mu    sync.Mutex // guards below
	pairs map[string]*pair

	tasks *lifecycle.Tasks
}

// pair is one PC that asks.
type pair struct {
	window remote.Window
	atOnce int
}

// NewExecutor makes one; Close ends it.
func NewExecutor(opts Options) *Executor {
	opts.reading = &wholes{}
	x := &Executor{opts: opts, look: lifecycle.NewSignal(), pairs: map[string]*pair{}}
	x.tasks = lifecycle.NewTasks(context.Background())
	if opts.Knows != nil {
		x.Look()
		x.tasks.Go(x.follow)
	}
	return x
}

// Look has the jobs looked at whose PCs may be known no more. It waits for nothing.
func (x *Executor) Look() {
	x.look.Notify()
}

func (x *Executor) follow() {
	for {
		select {
		case <-x.look:
			x.forsake()
		case <-x.tasks.Done():
			return
		}
	}
}

// forsake ends the jobs of PCs that are unpaired, or in the team no more: nobody there can
// steer them, answer what they ask or hear what comes of them (HUB-03).
func (x *Executor) forsake() {
	for _, one := range x.opts.Jobs.All() {
		goesOn := !one.State.IsEnded() || one.State == job.Limit && one.LimitUntil > 0 // by itself
		if one.PC == "" || !goesOn || one.CancelAsked || x.opts.Knows(one.PC) {
			continue
		}
		if _, err := x.opts.Jobs.Cancel(one.Name); err != nil {
			x.opts.Log.Error("a job of a PC that is known no more could not be ended", "job", one.Name, "for", one.Owner, "err", err)
			continue
		}
		x.opts.Log.Info("a job was ended: its PC is neither paired with this one nor in its team any more", "job", one.Name, "for", one.Owner)
	}
}

// Close breaks off what is being asked for. Jobs go on.
func (x *Executor) Close() {
	x.mu.Lock() // nothing is begun after
	x.tasks.Cancel()
	x.mu.Unlock()
	x.tasks.Wait()
}

// take serves a request; wrong is why it is none. It waits for nothing: answers go out
// by themselves.
func (x *Executor) take(request remote.Request, frameType string, wrong error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.pairs[request.Peer.ID]
	if p == nil {
		p = &pair{}
		x.pairs[request.Peer.ID] = p
	}
	if p.atOnce == maxAtOnce || x.tasks.HasEnded() {
		return
	}
	counted := p.window.Take(request.Operation, x.opts.Now()) // also one that is wrong
	if counted != nil {
		wrong = counted
	}
	p.atOnce++
	x.tasks.Go(func() {
		x.serve(request, frameType, wrong)
		x.mu.Lock()
		defer x.mu.Unlock()
		p.atOnce--
	})
}

// serve answers a request; refused is why it is not even looked at.
func (x *Executor) serve(request remote.Request, frameType string, refused error) {
	ctx, cancel := context.WithTimeout(x.tasks.Context(), patience)
	defer cancel()
	response := remote.Response{Rid: request.Rid, Err: refused}
	if refused == nil {
		response.Value, response.Err = x.carryOut(ctx, request)
	}
	switch code := bridge.CodeOf(response.Err); {
	case response.Err == nil:
	case code == bridge.Internal:
		x.opts.Log.Error("a request of a paired PC failed", "peer", request.Peer.Name, "operation", request.Operation, "job", request.Job, "err", response.Err)
	case code == bridge.Denied:
		x.opts.Log.Info("a request of a paired PC was refused", "peer", request.Peer.Name, "operation", request.Operation, "job", request.Job, "err", response.Err)
	}
	payload, err := encode(response)
	if err == nil {
		err = x.opts.Transport.Send(ctx, request.Peer.ID, remote.Frame{Type: frameType, Payload: payload})
	}
	if err != nil {
		x.opts.Log.Info("a paired PC could not be answered", "peer", request.Peer.Name, "err", err)
	}
}

// encode leaves out of an answer what makes it too large for the link, and says so.
func encode(response remote.Response) ([]byte, error) {
	result := response.Value.Result
	if result == nil || !result.IsPart() {
		payload, err := remote.EncodeResponse(response)
		if bridge.CodeOf(err) != bridge.TooLarge {
			return payload, err
		}
	}
	response.Value.Approvals = nil
	if result != nil {
		size, err := result.EncodedBytes()
		if err != nil {
			return nil, err
		}
		response.Value.Result, response.Value.ResultBytes = shortened(*result), size
	}
	return remote.EncodeResponse(response)
}

// mostCarried is how many characters of a result the link carries where it is too
// large to be carried whole: they fit however they are escaped.
const mostCarried = 100_000

// shortened is a result that fits the link, and says that it is not whole.
func shortened(e runs.Envelope) *runs.Envelope {
	note := fmt.Sprintf("This result has %d characters, more than the link between the two PCs carries. It is kept whole on the PC that did the job; this is its begin:\n\n", e.Chars())
	e.Result = note + runs.FirstChars(e.Result, mostCarried)
	e.Error = runs.FirstChars(e.Error, mostCarried/100)
	e.Evidence.Files, e.Evidence.Commands = []runs.Changed{}, []runs.Command{}
	return &e
}

// carryOut does what was asked for, as far as the policy of now allows it.
func (x *Executor) carryOut(ctx context.Context, request remote.Request) (remote.Value, error) {
	policy, err := x.opts.Policy()
	if err != nil {
		return remote.Value{}, bridge.WithCause(bridge.Denied, err, "the settings of this PC cannot be read: nothing is allowed")
	}
	if err := policy.AllowPeer(request.Peer.Name); err != nil {
		return remote.Value{}, err
	}
	defer x.Look() // whoever asks may have gone while it was done
	switch request.Operation {
	case remote.Spawn:
		err = x.spawn(ctx, policy, request)
	case remote.Control:
		return x.control(policy, request)
	case remote.Approval:
		err = x.opts.Answer(ctx, request.Job, request.Peer, request.Approval, request.Decision, request.Reason)
	case remote.ReadLog, remote.ReadDiff, remote.ReadResult:
		part, err := x.opts.Read(ctx, request)
		return remote.Value{Part: part}, err
	case remote.State:
	}
	if err != nil {
		return remote.Value{}, err
	}
	return x.opts.State(request.Job, request.Peer)
}

func (x *Executor) spawn(ctx context.Context, policy remote.Policy, request remote.Request) error {
	if err := policy.AllowAgent(request.Spawn.Kind); err != nil {
		return err
	}
	return x.opts.Spawn(ctx, Asked{
		Name: request.Job, Request: request.Spawn, Owner: request.Peer,
		Allow: func(places []remote.Place) error { return x.allow(policy, request.Peer.Name, places) },
	})
}

// allow decides over the folders of a job. A folder of the policy that is not there, or is
// reserved, is none.
func (x *Executor) allow(policy remote.Policy, peer string, places []remote.Place) error {
	roots := make([]string, len(policy.RemoteJobs.AllowRoots))
	for i, root := range policy.RemoteJobs.AllowRoots {
		if canonical, err := disk.Canonical(root); err == nil && x.opts.CheckRoot(canonical) == nil {
			roots[i] = canonical
		}
	}
	return policy.AllowPlaces(peer, roots, places)
}

// control tells a job something, or fetches what came of it. What may begin another
// turn has to be allowed as the job itself was.
func (x *Executor) control(policy remote.Policy, request remote.Request) (value remote.Value, err error) {
	var delivery job.Delivery
	var result *runs.Envelope
	switch {
	case request.Control.Result > 0:
		result, err = x.opts.Result(request.Job, request.Peer, request.Control.Result)
	case request.Control.Cancel:
		_, err = x.opts.Cancel(request.Job, request.Peer)
	default:
		delivery, err = x.say(policy, request)
	}
	if err != nil {
		return remote.Value{}, err
	}
	value, err = x.opts.State(request.Job, request.Peer)
	value.Delivery, value.Result = delivery, result
	return value, err
}

func (x *Executor) say(policy remote.Policy, request remote.Request) (job.Delivery, error) {
	one, err := x.opts.Job(request.Job, request.Peer)
	if err == nil {
		err = policy.AllowAgent(one.Agent)
	}
	if err == nil {
		err = x.allow(policy, request.Peer.Name, placesOf(one))
	}
	if err != nil {
		return "", err
	}
	return x.opts.Say(request.Job, request.Peer, request.Control.ID, request.Control.Message)
}
