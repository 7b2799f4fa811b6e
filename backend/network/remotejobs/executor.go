// Package remotejobs runs jobs for paired PCs, and requests jobs from paired PCs, over
// any transport of requests and answers. The executor checks the owner's policy for each
// request, counts requests, and passes allowed ones to the jobs of this PC. The requester
// sends requests and follows the jobs that it began. The rules are in remote.
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

// Options configures an [Executor]. All fields except Git and Knows are required.
type Options struct {
	Owned
	Transport pairing.Transport
	// Policy returns what the owner of this PC allows now.
	Policy func() (remote.Policy, error)
	// CheckRoot fails for a folder of the policy in which no job may write (SEC-09): that
	// folder allows nothing.
	CheckRoot func(folder string) error
	// Knows reports whether the PC with that id is paired with this one, or in its team.
	// If nil, all are.
	Knows func(pc string) bool
	Log   *slog.Logger
}

const (
	// maxAtOnce is how many requests of one PC are processed at a time. Further ones get
	// no answer, because such a requester does not wait for answers.
	maxAtOnce = 32
	// patience is the timeout of one request, with its answer.
	patience = 15 * time.Second
)

// Executor serves the requests of paired PCs as the policy allows.
type Executor struct {
	opts Options
	look lifecycle.Signal // the known PCs may have changed

	mu    sync.Mutex // guards the fields below
	pairs map[string]*pair

	tasks *lifecycle.Tasks
}

// pair is the state of one requesting PC.
type pair struct {
	window remote.Window
	atOnce int
}

// NewExecutor returns a running executor; Close ends it.
func NewExecutor(opts Options) *Executor {
	opts.reading = &wholes{}
	x := &Executor{opts: opts, look: lifecycle.NewSignal(), pairs: map[string]*pair{}}
	x.tasks = lifecycle.NewTasks(context.Background())
	if opts.Knows != nil {
		x.Notify()
		x.tasks.Go(x.follow)
	}
	return x
}

// Notify schedules a check for jobs whose PCs are no longer known. It does not block.
func (x *Executor) Notify() {
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

// forsake ends the jobs of PCs that are unpaired or no longer in the team (HUB-03). No
// one there can steer them, answer their requests or receive their results.
func (x *Executor) forsake() {
	for _, entry := range x.opts.Jobs.All() {
		goesOn := !entry.State.IsEnded() || entry.State == job.Limit && entry.LimitUntil > 0 // automatically
		if entry.PC == "" || !goesOn || entry.CancelAsked || x.opts.Knows(entry.PC) {
			continue
		}
		if _, err := x.opts.Jobs.Cancel(entry.Name); err != nil {
			x.opts.Log.Error("a job of a PC that is known no more could not be ended", "job", entry.Name, "for", entry.Owner, "err", err)
			continue
		}
		x.opts.Log.Info("a job was ended: its PC is neither paired with this one nor in its team any more", "job", entry.Name, "for", entry.Owner)
	}
}

// Close interrupts the running requests. Jobs continue.
func (x *Executor) Close() {
	x.mu.Lock() // no goroutine starts after this
	x.tasks.Cancel()
	x.mu.Unlock()
	x.tasks.Wait()
}

// take serves a request; wrong is why it is invalid. It does not block: answers are sent
// in the background.
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
	counted := p.window.Take(request.Operation, x.opts.Now()) // counts invalid ones too
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

// serve answers a request; refused is why it is not processed.
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

// encode encodes an answer. It drops the parts that make it too large, and marks that.
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

// mostCarried is how many characters of a result are sent if it is too large as a whole:
// they fit with any escaping.
const mostCarried = 100_000

// shortened returns a result that fits the link, with a note that it is incomplete.
func shortened(e runs.Envelope) *runs.Envelope {
	note := fmt.Sprintf("This result has %s, more than the link between the two PCs carries. It is kept whole on the PC that did the job; this is its begin:\n\n", bridge.Counted(e.Chars(), "character"))
	e.Result = note + runs.FirstChars(e.Result, mostCarried)
	e.Error = runs.FirstChars(e.Error, mostCarried/100)
	e.Evidence.Files, e.Evidence.Commands = []runs.Changed{}, []runs.Command{}
	return &e
}

// carryOut executes a request, as the present policy allows.
func (x *Executor) carryOut(ctx context.Context, request remote.Request) (remote.Value, error) {
	policy, err := x.opts.Policy()
	if err != nil {
		return remote.Value{}, bridge.WithCause(bridge.Denied, err, "the settings of this PC cannot be read: nothing is allowed")
	}
	if err := policy.AllowPeer(request.Peer.Name); err != nil {
		return remote.Value{}, err
	}
	defer x.Notify() // the requesting PC may have been removed meanwhile
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

// allow checks the folders of a job against the policy. A folder of the policy that is
// missing or reserved does not count.
func (x *Executor) allow(policy remote.Policy, peer string, places []remote.Place) error {
	roots := make([]string, len(policy.RemoteJobs.AllowRoots))
	for i, root := range policy.RemoteJobs.AllowRoots {
		if canonical, err := disk.Canonical(root); err == nil && x.opts.CheckRoot(canonical) == nil {
			roots[i] = canonical
		}
	}
	return policy.AllowPlaces(peer, roots, places)
}

// control sends a message to a job, cancels it, or returns its result. A message may
// begin another turn, so it needs the same permission as the job itself.
func (x *Executor) control(policy remote.Policy, request remote.Request) (value remote.Value, err error) {
	var delivery job.Delivery
	var result *runs.Envelope
	switch {
	case request.Control.Result > 0:
		result, err = x.opts.Result(request.Job, request.Peer, request.Control.Result)
	case request.Control.Cancel:
		_, err = x.opts.Cancel(request.Job, request.Peer)
	default:
		delivery, err = x.message(policy, request)
	}
	if err != nil {
		return remote.Value{}, err
	}
	value, err = x.opts.State(request.Job, request.Peer)
	value.Delivery, value.Result = delivery, result
	return value, err
}

func (x *Executor) message(policy remote.Policy, request remote.Request) (job.Delivery, error) {
	entry, err := x.opts.Job(request.Job, request.Peer)
	if err == nil {
		err = policy.AllowAgent(entry.Agent)
	}
	if err == nil {
		err = x.allow(policy, request.Peer.Name, placesOf(entry))
	}
	if err != nil {
		return "", err
	}
	return x.opts.Say(request.Job, request.Peer, request.Control.ID, request.Control.Message)
}
