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

// DelegatedJobs is the registry of the jobs that this PC has given to paired PCs.
type DelegatedJobs interface {
	// Followed returns the jobs whose state may still change.
	Followed() []job.Job
	// RecordReport records the state that the PC reports for a job, or the error.
	RecordReport(name string, value remote.Value, err error) error
	// Missing returns the run whose result must be fetched next; 0 for none.
	Missing(name string) int
	// Came records the result of a run.
	Came(ctx context.Context, name string, result runs.Envelope) error
}

// RequesterOptions configures a [Requester]. All fields except Timing are required.
type RequesterOptions struct {
	Transport pairing.Transport
	Jobs      DelegatedJobs
	Log       *slog.Logger
	Timing    Timing
}

// Timing sets the poll intervals: each job is polled at most once per Every, and the jobs
// of one PC at least MinInterval apart. Timeout is the timeout of each request; 0 means the
// default of package remote.
type Timing struct{ Every, MinInterval, Timeout time.Duration }

var usualTiming = Timing{Every: remote.PollEvery, MinInterval: remote.PollGap}

// Requester requests jobs from paired PCs, and follows those that they run.
type Requester struct {
	opts RequesterOptions
	more lifecycle.Signal // there are jobs to follow

	mu       sync.Mutex // guards the fields below
	waiting  map[string]waiting
	polled   map[string]time.Time // by job
	polling  map[string]polling   // by PC
	partials map[string]partial   // by PC
	gap      map[string]time.Time // by PC: time of the last poll

	tasks *lifecycle.Tasks
}

// waiting is a request without an answer.
type waiting struct {
	pc     string
	answer chan remote.Response // capacity 1
}

// polling is a poll in progress: its answer comes on the same link as its request, if at all.
type polling struct {
	since time.Time // since when that link is up
	drop  context.CancelFunc
}

// NewRequester returns a requester; Run starts to follow jobs, Close ends it.
func NewRequester(opts RequesterOptions) *Requester {
	if opts.Timing == (Timing{}) {
		opts.Timing = usualTiming
	}
	r := &Requester{
		opts: opts, more: lifecycle.NewSignal(), waiting: map[string]waiting{},
		polled: map[string]time.Time{}, polling: map[string]polling{}, gap: map[string]time.Time{}, partials: map[string]partial{},
	}
	r.tasks = lifecycle.NewTasks(context.Background())
	return r
}

// Run starts to follow jobs, until Close.
func (r *Requester) Run() { r.tasks.Go(r.follow) }

// Close interrupts the pending requests. Jobs continue.
func (r *Requester) Close() {
	r.tasks.Stop()
}

// Know returns the id of the paired PC with that name. It fails if the PC cannot be asked now.
func (r *Requester) Know(host string) (string, error) {
	_, capability := remote.Spawn.Frame()
	list := r.opts.Transport.Status()
	at := slices.IndexFunc(list, func(s remote.Status) bool { return s.Name == host })
	if at < 0 {
		return "", bridge.Errorf(bridge.NotFound, "no PC named %q is paired with this one or in its team: `bridge network` lists those that are", host)
	}
	return list[at].ID, canAsk(list[at], capability)
}

// canAsk fails if the PC cannot be asked now: requests are not queued (RMT-15).
func canAsk(s remote.Status, capability string) error {
	switch {
	case !s.Up:
		return bridge.Errorf(bridge.Unavailable, "there is no link to %s now: nothing was sent, and nothing waits to be", s.Name)
	case !s.Can(capability):
		return remote.ErrUpdate(s, capability)
	}
	return nil
}

// Ask sends a request to a PC and waits for its answer, up to the operation's timeout. If
// the error satisfies remote.IsUnanswered, the outcome is unknown. After any other error,
// nothing was done.
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
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.opts.Timing.Timeout, remote.TimeoutFor(request.Operation)))
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

// isTo reports whether value can answer the request.
func isTo(value remote.Value, request remote.Request) bool {
	if request.Operation.IsRead() {
		return value.Part != nil && len(value.Part.Data) <= remote.MaxPartBytes && value.Part.Size >= 0
	}
	return value.State != nil && value.State.Job == request.Job
}

// take delivers an answer to its waiting caller, if it comes from the PC that was asked.
func (r *Requester) take(from remote.PC, response remote.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting, is := r.waiting[response.Rid]; is && waiting.pc == from.ID {
		delete(r.waiting, response.Rid)
		waiting.answer <- response
	}
}

// Notify signals that there are jobs to follow.
func (r *Requester) Notify() {
	r.more.Notify()
}

// follow polls the jobs, one at a time for each PC. A PC that does not answer thus delays
// no other.
func (r *Requester) follow() {
	tick := time.NewTicker(r.opts.Timing.MinInterval)
	defer tick.Stop()
	for {
		wait := tick.C
		r.dropEnded()
		jobs := r.opts.Jobs.Followed()
		if len(jobs) == 0 {
			wait = nil // until there are some
		}
		for _, entry := range r.due(jobs) {
			r.tasks.Go(func() { r.poll(entry) })
		}
		select {
		case <-wait:
		case <-r.more:
		case <-r.tasks.Done():
			return
		}
	}
}

// dropEnded cancels the polls whose link has ended, so that they do not delay the next
// ones until their timeout.
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

// due picks for each idle PC the job whose last poll is oldest, if it is time. It marks
// that job as polled now.
func (r *Requester) due(jobs []job.Job) []job.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, next := time.Now(), map[string]job.Job{} //nolint:forbidigo // of a pause, not of a record
	for _, entry := range jobs {
		pc := entry.Mirror.PC
		if _, is := r.polling[pc]; is || now.Sub(r.gap[pc]) < r.opts.Timing.MinInterval || now.Sub(r.polled[entry.Name]) < r.after(entry) {
			continue
		}
		if before, has := next[pc]; !has || r.polled[entry.Name].Before(r.polled[before.Name]) {
			next[pc] = entry
		}
	}
	maps.DeleteFunc(r.polled, func(name string, _ time.Time) bool {
		return !slices.ContainsFunc(jobs, func(entry job.Job) bool { return entry.Name == name })
	})
	for pc, entry := range next {
		r.polling[pc] = polling{drop: func() {}}
		r.gap[pc], r.polled[entry.Name] = now, now
	}
	return slices.Collect(maps.Values(next))
}

// after returns the poll interval of a job. A job ended by a usage limit may be continued
// later, and is polled rarely.
func (r *Requester) after(entry job.Job) time.Duration {
	if entry.State == job.Limit && entry.ResultSent {
		return remote.LimitPoll
	}
	return r.opts.Timing.Every
}

// poll requests the state of a job, and fetches its missing results.
func (r *Requester) poll(entry job.Job) {
	ctx, drop := context.WithCancel(r.tasks.Context())
	status, _ := r.opts.Transport.Of(entry.Mirror.PC) // Ask returns the same error
	r.mu.Lock()
	r.polling[entry.Mirror.PC] = polling{status.Since, drop}
	r.mu.Unlock()
	defer func() {
		drop()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.polling, entry.Mirror.PC)
	}()
	value, err := r.Ask(ctx, entry.Mirror.PC, remote.Request{Operation: remote.State, Job: entry.Remote.Name, Peer: peerOf(entry)}, nil)
	if r.tasks.HasEnded() {
		return
	}
	err = r.opts.Jobs.RecordReport(entry.Name, value, err)
	for run := r.opts.Jobs.Missing(entry.Name); err == nil && run > 0; run = r.opts.Jobs.Missing(entry.Name) {
		err = r.fetch(ctx, entry, run)
	}
	if err != nil && !r.tasks.HasEnded() {
		r.opts.Log.Warn("what a paired PC says of a job could not be taken", "host", entry.Remote.Host, "job", entry.Name, "err", err)
	}
}

func (r *Requester) fetch(ctx context.Context, entry job.Job, run int) error {
	request := remote.Request{Operation: remote.Control, Job: entry.Remote.Name, Peer: peerOf(entry), Control: remote.ControlArgs{Result: run}}
	value, err := r.Ask(ctx, entry.Mirror.PC, request, nil)
	if code := bridge.CodeOf(err); code == bridge.NotFound || code == bridge.Storage { // it will never come
		lost := runs.NewEnvelope(entry.Name, run, job.Outcome{State: job.Failed, Ended: job.EndFailed}, "", runs.Evidence{}, time.Time{})
		lost.Error = entry.Remote.Host + " cannot tell what came of this run: " + err.Error()
		return r.opts.Jobs.Came(r.tasks.Context(), entry.Name, lost)
	}
	if err != nil {
		return err
	}
	if value.Result == nil || value.Result.Run != run {
		return bridge.Errorf(bridge.Internal, "%s answered without the result of run %d", entry.Remote.Host, run)
	}
	if value.ResultBytes > 0 && value.ResultBytes <= maxWholeBytes {
		envelope, err := r.whole(ctx, entry, run)
		switch code := bridge.CodeOf(err); {
		case err == nil:
			value.Result = &envelope
		case code == bridge.Unavailable || code == bridge.Busy || code == bridge.Conflict: // read later
			return err
		default: // the shortened result is used
			r.opts.Log.Warn("a result could not be read whole", "host", entry.Remote.Host, "job", entry.Name, "err", err)
		}
	}
	return r.opts.Jobs.Came(r.tasks.Context(), entry.Name, *value.Result)
}

// maxWholeBytes limits a result that is fetched whole: with the data added here, it must
// stay readable as one envelope.
const maxWholeBytes = runs.MaxEnvelopeBytes - 4096

// partial is the part of a result that was read before its PC stopped answering.
type partial struct {
	job     string
	run     int
	version string
	data    []byte
}

// taken returns and forgets what was already read of that result. There is one partial per PC.
func (r *Requester) taken(entry job.Job, run int, version *string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.partials[entry.Mirror.PC]
	delete(r.partials, entry.Mirror.PC)
	if p.job != entry.Name || p.run != run {
		return nil
	}
	*version = p.version
	return p.data
}

func (r *Requester) keep(entry job.Job, p partial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partials[entry.Mirror.PC] = p
}

// whole reads a result in parts that does not fit one frame.
func (r *Requester) whole(ctx context.Context, entry job.Job, run int) (result runs.Envelope, err error) {
	host := entry.Remote.Host
	request := remote.Request{Operation: remote.ReadResult, Job: entry.Remote.Name, Peer: peerOf(entry), Control: remote.ControlArgs{Result: run}}
	data := r.taken(entry, run, &request.Of)
	for {
		request.From = int64(len(data))
		value, err := r.Ask(ctx, entry.Mirror.PC, request, nil)
		if err != nil {
			if bridge.CodeOf(err) == bridge.Unavailable { // reading resumes from here
				r.keep(entry, partial{entry.Name, run, request.Of, data})
			}
			return result, err
		}
		part := value.Part
		if data == nil && part.Size <= maxWholeBytes { // growing would hold the data twice
			data = make([]byte, 0, max(0, part.Size))
		}
		data, request.Of = append(data, part.Data...), part.Of
		switch {
		case part.Size > maxWholeBytes || int64(len(data)) > part.Size:
			return result, bridge.Errorf(bridge.TooLarge, "%s sends more of a result than it has said", host)
		case int64(len(data)) == part.Size:
			if result, err = runs.DecodeEnvelope(data, entry.Remote.Name); err == nil && result.Run != run {
				err = bridge.Errorf(bridge.Internal, "%s sent the result of run %d, not of %d", host, result.Run, run)
			}
			return result, err
		case len(part.Data) == 0:
			return result, bridge.Errorf(bridge.Internal, "%s sent an empty part", host)
		}
	}
}

// peerOf returns the requesting peer for a job: the supervisor that was recorded with it.
func peerOf(entry job.Job) remote.Peer { return remote.Peer{Supervisor: entry.Supervisor} }
