package remotejobs

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/lifecycle"
)

// Given are the jobs that this PC has given to paired ones, as its registry keeps them.
type Given interface {
	// Followed lists those of which something may come.
	Followed() []job.Job
	// HeardFrom takes what the PC says of a job, or why it says nothing.
	HeardFrom(name string, value remote.Value, err error) error
	// Missing is the run whose result is to be fetched next; 0 is none.
	Missing(name string) int
	// Came takes what came of a run.
	Came(ctx context.Context, name string, result runs.Envelope) error
}

// RequesterOptions say what a requester works with. All are required but Pace.
type RequesterOptions struct {
	Transport pairing.Transport
	Jobs      Given
	Log       *slog.Logger
	Pace      Pace
}

// Pace is how often jobs are asked for: a job, at least Every, and of one PC any job, at
// least a Gap apart. Patience is how long each request may stay unanswered; 0 is as long
// as remote says.
type Pace struct{ Every, Gap, Patience time.Duration }

var usualPace = Pace{Every: remote.PollEvery, Gap: remote.PollGap}

// Requester asks paired PCs for jobs, and keeps up with those that they do.
type Requester struct {
	opts RequesterOptions
	more lifecycle.Signal // there is something to follow

	mu       sync.Mutex // guards below
	waiting  map[string]waiting
	polled   map[string]time.Time // by job
	polling  map[string]polling   // by PC
	partials map[string]partial   // by PC
	gap      map[string]time.Time // by PC: when it was polled last

	tasks *lifecycle.Tasks
}

// waiting is a request that has no answer yet.
type waiting struct {
	pc     string
	answer chan remote.Response // capacity 1
}

// polling is a poll under way: its answer comes on the link on which it was asked, if any.
type polling struct {
	since time.Time // when that link came up
	drop  context.CancelFunc
}

// NewRequester makes one; Run begins to follow, Close ends it.
func NewRequester(opts RequesterOptions) *Requester {
	if opts.Pace == (Pace{}) {
		opts.Pace = usualPace
	}
	r := &Requester{
		opts: opts, more: lifecycle.NewSignal(), waiting: map[string]waiting{},
		polled: map[string]time.Time{}, polling: map[string]polling{}, gap: map[string]time.Time{}, partials: map[string]partial{},
	}
	r.tasks = lifecycle.NewTasks(context.Background())
	return r
}

// Run follows what there is to follow until Close.
func (r *Requester) Run() { r.tasks.Go(r.follow) }

// Close breaks off what is being asked. Jobs go on.
func (r *Requester) Close() {
	r.tasks.Stop()
}

// Know is the identity of the paired PC of that name, which can be asked now.
func (r *Requester) Know(host string) (string, error) {
	_, capability := remote.Spawn.Frame()
	list := r.opts.Transport.Status()
	at := slices.IndexFunc(list, func(s remote.Status) bool { return s.Name == host })
	if at < 0 {
		return "", bridge.Errorf(bridge.NotFound, "no PC named %q is paired with this one or in its team: `bridge network` lists those that are", host)
	}
	return list[at].ID, canAsk(list[at], capability)
}

// canAsk refuses at once what could not be asked now: nothing is queued (RMT-15).
func canAsk(s remote.Status, capability string) error {
	switch {
	case !s.Up:
		return bridge.Errorf(bridge.Unavailable, "there is no link to %s now: nothing was sent, and nothing waits to be", s.Name)
	case !s.Can(capability):
		return remote.ErrUpdate(s, capability)
	}
	return nil
}

// Ask asks a PC for something and waits for its answer, for as long as the operation
// has. An error that remote.IsUnanswered says that nobody knows what became of it; after
// every other one nothing was done.
func (r *Requester) Ask(ctx context.Context, pc string, request remote.Request, args json.RawMessage) (remote.Value, error) {
	frameType, capability := request.Operation.Frame()
	status, err := r.opts.Transport.Of(pc)
	if err == nil {
		err = canAsk(status, capability)
	}
	if err != nil {
		return remote.Value{}, err
	}
	request.Rid = uuid.NewString()
	payload, err := remote.EncodeRequest(request, args)
	if err != nil {
		return remote.Value{}, err
	}
	answer := make(chan remote.Response, 1)
	r.mu.Lock()
	r.waiting[request.Rid] = waiting{pc, answer}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, request.Rid)
	}()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.opts.Pace.Patience, remote.PatienceFor(request.Operation)))
	defer cancel()
	if err := r.opts.Transport.Send(ctx, pc, remote.Frame{Type: frameType, Payload: payload}); err != nil {
		if ctx.Err() != nil {
			return remote.Value{}, remote.ErrUnanswered(status.Name, request.Operation)
		}
		return remote.Value{}, err
	}
	select {
	case response := <-answer:
		if response.Err == nil && !isTo(response.Value, request) {
			return remote.Value{}, bridge.Errorf(bridge.Internal, "%s answered about another job", status.Name)
		}
		return response.Value, response.Err
	case <-ctx.Done():
	case <-r.tasks.Done():
	}
	return remote.Value{}, remote.ErrUnanswered(status.Name, request.Operation)
}

// isTo reports whether that can be the answer.
func isTo(value remote.Value, request remote.Request) bool {
	if request.Operation.IsRead() {
		return value.Part != nil && len(value.Part.Data) <= remote.MaxPartBytes && value.Part.Size >= 0
	}
	return value.State != nil && value.State.Job == request.Job
}

// take gives an answer to whoever waits for it, if it comes from whom was asked.
func (r *Requester) take(from remote.PC, response remote.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked, is := r.waiting[response.Rid]; is && asked.pc == from.ID {
		delete(r.waiting, response.Rid)
		asked.answer <- response
	}
}

// Follow says that there is something to follow.
func (r *Requester) Follow() {
	r.more.Notify()
}

// follow polls the jobs that there are, one at a time of each PC, so that a PC that
// does not answer holds up no other.
func (r *Requester) follow() {
	tick := time.NewTicker(r.opts.Pace.Gap)
	defer tick.Stop()
	for {
		wait := tick.C
		r.dropEnded()
		jobs := r.opts.Jobs.Followed()
		if len(jobs) == 0 {
			wait = nil // until there are some
		}
		for _, one := range r.due(jobs) {
			r.tasks.Go(func() { r.poll(one) })
		}
		select {
		case <-wait:
		case <-r.more:
		case <-r.tasks.Done():
			return
		}
	}
}

// dropEnded gives up the polls whose link has ended, so that they do not hold up the next
// ones for as long as an answer may take.
func (r *Requester) dropEnded() {
	r.mu.Lock()
	polls := maps.Clone(r.polling)
	r.mu.Unlock()
	for pc, poll := range polls {
		if status, err := r.opts.Transport.Of(pc); err != nil || !status.Up || !status.Since.Equal(poll.since) {
			poll.drop()
		}
	}
}

// due picks of each PC that can be asked the job that was asked for longest ago, where
// it is time, and notes that it is asked for now.
func (r *Requester) due(jobs []job.Job) []job.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, next := time.Now(), map[string]job.Job{} //nolint:forbidigo // of a pause, not of a record
	for _, one := range jobs {
		pc := one.Mirror.PC
		if _, is := r.polling[pc]; is || now.Sub(r.gap[pc]) < r.opts.Pace.Gap || now.Sub(r.polled[one.Name]) < r.after(one) {
			continue
		}
		if before, has := next[pc]; !has || r.polled[one.Name].Before(r.polled[before.Name]) {
			next[pc] = one
		}
	}
	maps.DeleteFunc(r.polled, func(name string, _ time.Time) bool {
		return !slices.ContainsFunc(jobs, func(one job.Job) bool { return one.Name == name })
	})
	for pc, one := range next {
		r.polling[pc] = polling{drop: func() {}}
		r.gap[pc], r.polled[one.Name] = now, now
	}
	return slices.Collect(maps.Values(next))
}

// after is how long a job that was asked for is left alone: one that a usage limit has
// ended may be continued there, some time.
func (r *Requester) after(one job.Job) time.Duration {
	if one.State == job.Limit && one.ResultSent {
		return remote.LimitPoll
	}
	return r.opts.Pace.Every
}

// poll asks for the state of a job, and fetches what came of it.
func (r *Requester) poll(one job.Job) {
	ctx, drop := context.WithCancel(r.tasks.Context())
	status, _ := r.opts.Transport.Of(one.Mirror.PC) // its error Ask has, too
	r.mu.Lock()
	r.polling[one.Mirror.PC] = polling{status.Since, drop}
	r.mu.Unlock()
	defer func() {
		drop()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.polling, one.Mirror.PC)
	}()
	value, err := r.Ask(ctx, one.Mirror.PC, remote.Request{Operation: remote.State, Job: one.Remote.Name, Peer: peerOf(one)}, nil)
	if r.tasks.HasEnded() {
		return
	}
	err = r.opts.Jobs.HeardFrom(one.Name, value, err)
	for run := r.opts.Jobs.Missing(one.Name); err == nil && run > 0; run = r.opts.Jobs.Missing(one.Name) {
		err = r.fetch(ctx, one, run)
	}
	if err != nil && !r.tasks.HasEnded() {
		r.opts.Log.Warn("what a paired PC says of a job could not be taken", "host", one.Remote.Host, "job", one.Name, "err", err)
	}
}

func (r *Requester) fetch(ctx context.Context, one job.Job, run int) error {
	request := remote.Request{Operation: remote.Control, Job: one.Remote.Name, Peer: peerOf(one), Control: remote.ControlArgs{Result: run}}
	value, err := r.Ask(ctx, one.Mirror.PC, request, nil)
	if code := bridge.CodeOf(err); code == bridge.NotFound || code == bridge.Storage { // it will not come any more
		lost := runs.NewEnvelope(one.Name, run, job.Outcome{State: job.Failed, Ended: job.EndFailed}, "", runs.Evidence{}, time.Time{})
		lost.Error = one.Remote.Host + " cannot tell what came of this run: " + err.Error()
		return r.opts.Jobs.Came(r.tasks.Context(), one.Name, lost)
	}
	if err != nil {
		return err
	}
	if value.Result == nil || value.Result.Run != run {
		return bridge.Errorf(bridge.Internal, "%s answered without the result of run %d", one.Remote.Host, run)
	}
	if value.ResultBytes > 0 && value.ResultBytes <= maxWholeBytes {
		whole, err := r.whole(ctx, one, run)
		switch code := bridge.CodeOf(err); {
		case err == nil:
			value.Result = &whole
		case code == bridge.Unavailable || code == bridge.Busy || code == bridge.Conflict: // it is read later
			return err
		default: // what is known of it is told
			r.opts.Log.Warn("a result could not be read whole", "host", one.Remote.Host, "job", one.Name, "err", err)
		}
	}
	return r.opts.Jobs.Came(r.tasks.Context(), one.Name, *value.Result)
}

// maxWholeBytes bounds a result that is taken whole: it has to be read here by itself
// with what is added to it.
const maxWholeBytes = runs.MaxEnvelopeBytes - 4096

// partial is what was read of a result when its PC did not answer.
type partial struct {
	job  string
	run  int
	of   string
	data []byte
}

// taken is what was read already of that result. Of each PC one is kept.
func (r *Requester) taken(one job.Job, run int, of *string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.partials[one.Mirror.PC]
	delete(r.partials, one.Mirror.PC)
	if p.job != one.Name || p.run != run {
		return nil
	}
	*of = p.of
	return p.data
}

func (r *Requester) keep(one job.Job, p partial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partials[one.Mirror.PC] = p
}

// whole reads by parts a result that one frame does not carry.
func (r *Requester) whole(ctx context.Context, one job.Job, run int) (result runs.Envelope, err error) {
	host := one.Remote.Host
	request := remote.Request{Operation: remote.ReadResult, Job: one.Remote.Name, Peer: peerOf(one), Control: remote.ControlArgs{Result: run}}
	data := r.taken(one, run, &request.Of)
	for {
		request.From = int64(len(data))
		value, err := r.Ask(ctx, one.Mirror.PC, request, nil)
		if err != nil {
			if bridge.CodeOf(err) == bridge.Unavailable { // it is read on from here
				r.keep(one, partial{one.Name, run, request.Of, data})
			}
			return result, err
		}
		part := value.Part
		if data == nil && part.Size <= maxWholeBytes { // growing would hold it twice
			data = make([]byte, 0, max(0, part.Size))
		}
		data, request.Of = append(data, part.Data...), part.Of
		switch {
		case part.Size > maxWholeBytes || int64(len(data)) > part.Size:
			return result, bridge.Errorf(bridge.TooLarge, "%s sends more of a result than it has said", host)
		case int64(len(data)) == part.Size:
			if result, err = runs.DecodeEnvelope(data, one.Remote.Name); err == nil && result.Run != run {
				err = bridge.Errorf(bridge.Internal, "%s sent the result of run %d, not of %d", host, result.Run, run)
			}
			return result, err
		case len(part.Data) == 0:
			return result, bridge.Errorf(bridge.Internal, "%s sent an empty part", host)
		}
	}
}

// peerOf is who a PC hears to be asking for a job: whoever gave it, by the identity
// that was recorded with it.
func peerOf(one job.Job) remote.Peer { return remote.Peer{Supervisor: one.Supervisor} }
