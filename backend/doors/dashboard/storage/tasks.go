package storage

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
)

const (
	// keptTasks is how many ended tasks are kept.
	keptTasks = 10
	// progressPace is the minimum time between two shown updates of a running task.
	progressPace = 100 * time.Millisecond
)

// Tasks runs maintenance of the home at the owner's request, one task at a time.
type Tasks struct {
	care    func() maintain.Maintenance // nil if no maintenance is possible
	agents  CommandLiner                // may be nil
	storage *Reports
	ctx     context.Context //nolint:containedctx // the dashboard's own life: a task outlives its request
	now     func() time.Time
	log     *slog.Logger
	changed func() // called after a visible change

	mu      sync.Mutex // guards below
	closed  bool
	running *dto.Task
	shownAt time.Time  // last shown progress of the running one
	ended   []dto.Task // newest first
	group   sync.WaitGroup
}

// CommandLiner returns the command that a person types to run Bridge;
// connect.Agents implements it.
type CommandLiner interface {
	CommandLine(args ...string) string
}

// Options configures Tasks. All fields are required unless the comment says
// otherwise.
type Options struct {
	// Maintenance uses the current settings; nil if none is possible.
	Maintenance func() maintain.Maintenance
	// Commands may be nil.
	Commands CommandLiner
	// Reports makes a new report after each task.
	Reports *Reports
	// Life is the dashboard's context: a task outlives its request, but not the dashboard.
	Context context.Context //nolint:containedctx // it is handed on
	Changed func()          // something of what is shown changed
	Now     func() time.Time
	Log     *slog.Logger
}

// NewTasks returns Tasks without any ended task.
func NewTasks(opts Options) *Tasks {
	return &Tasks{
		care: opts.Maintenance, agents: opts.Commands, storage: opts.Reports, ctx: opts.Context,
		now: opts.Now, log: opts.Log, changed: opts.Changed,
	}
}

// taskRequest is the body of POST /api/storage/work.
type taskRequest struct {
	Action  maintain.Task `json:"action"`
	Consent bool          `json:"consent"`
}

// offered lists the tasks in display order.
var offered = []maintain.Task{
	maintain.TaskBackup, maintain.TaskTest, maintain.TaskCheck, maintain.TaskArchive,
	maintain.TaskFix, maintain.TaskMerge, maintain.TaskRestore,
}

// needsConsent reports whether a task needs consent: a check is free, all others write to the home.
func needsConsent(task maintain.Task) bool { return task != maintain.TaskCheck }

// notHere returns why a task needs exclusive access to the home, or "" if it can
// run with live writers (STO-09).
func notHere(task maintain.Task) string {
	switch task {
	case maintain.TaskFix, maintain.TaskMerge:
		return "It needs exclusive access to the home, and the broker that shows this page is one of its writers: stop the sessions and the broker, then run the command."
	case maintain.TaskRestore:
		return "It replaces files that the broker and the sessions are writing: stop them all, then run the command."
	default:
		return ""
	}
}

func (s *Tasks) offer(task maintain.Task, care maintain.Maintenance) dto.Offer {
	offer := dto.Offer{Action: string(task), Explains: care.Explain(task, ""), Consent: needsConsent(task), Refused: notHere(task)}
	if task == maintain.TaskArchive && care.ArchiveAge == 0 {
		offer.Refused = offer.Explains
	}
	args := []string{"doctor"}
	switch task {
	case maintain.TaskCheck:
	case maintain.TaskRestore, maintain.TaskMerge:
		args = append(args, "--"+string(task), "latest")
	default:
		args = append(args, "--"+string(task))
	}
	offer.Command = "bridge doctor"
	if s.agents != nil {
		offer.Command = s.agents.CommandLine(args...)
	}
	return offer
}

// Show answers GET /api/storage/work: the running task, the last results, and the
// available tasks.
func (s *Tasks) Show(w http.ResponseWriter, _ *http.Request) error {
	wire := s.wire()
	wire.Offers, wire.Hints = []dto.Offer{}, map[string]string{}
	if s.care != nil {
		care := s.care()
		for _, task := range offered {
			wire.Offers = append(wire.Offers, s.offer(task, care))
		}
	}
	for code := range check.Kinds() {
		wire.Hints[string(code)] = code.Hint()
	}
	return httpjson.WriteJSON(w, wire)
}

// Start answers POST /api/storage/work: it starts a task and returns the state. The
// events and GET report its progress.
func (s *Tasks) Start(w http.ResponseWriter, r *http.Request) error {
	var request taskRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if !slices.Contains(offered, request.Action) {
		return bridge.Errorf(bridge.Invalid, "action must be one of %v", offered)
	}
	if s.care == nil {
		return bridge.Errorf(bridge.Unavailable, "the storage cannot be worked on from here: run `bridge doctor`")
	}
	care := s.care()
	offer := s.offer(request.Action, care)
	if offer.Refused != "" {
		return bridge.Errorf(bridge.Conflict, "%s cannot be done from here. %s The command is: %s", request.Action, offer.Refused, offer.Command)
	}
	if offer.Consent && !request.Consent {
		return bridge.Errorf(bridge.Invalid, "consent must be true for %s. %s", request.Action, offer.Explains)
	}
	if err := s.begin(s.ctx, request.Action, func(ctx context.Context) (string, error) { return s.runTask(ctx, request.Action, care) }); err != nil {
		return err
	}
	return s.Show(w, r)
}

// begin starts do unless another task runs; then it fails.
func (s *Tasks) begin(ctx context.Context, action maintain.Task, do func(context.Context) (string, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return bridge.Errorf(bridge.Unavailable, "the dashboard is closing")
	case s.running != nil:
		return bridge.Errorf(bridge.Conflict, "one thing at a time: %s is still running", s.running.Action)
	}
	s.running = &dto.Task{Action: string(action), State: "running", Began: s.now().UnixMilli()}
	s.group.Go(func() {
		result, err := do(ctx)
		s.end(result, err)
	})
	s.changed()
	return nil
}

// end moves the running task to the ended ones.
func (s *Tasks) end(result string, err error) {
	s.mu.Lock()
	at := s.now().UnixMilli()
	done := *s.running
	done.State, done.Ended, done.Step, done.Result = "done", &at, "", result
	if err != nil {
		done.State = "failed"
		_, done.Result = httpjson.AnswerFor(err)
	}
	s.running, s.shownAt = nil, time.Time{}
	s.ended = append([]dto.Task{done}, s.ended...)[:min(len(s.ended)+1, keptTasks)]
	s.mu.Unlock()
	s.changed()
}

// progress is the running task's OnProgress.
func (s *Tasks) progress(step string, done, all int64) {
	s.mu.Lock()
	if s.running == nil {
		s.mu.Unlock()
		return
	}
	s.running.Step, s.running.Done, s.running.All = filepath.ToSlash(step), done, all
	quiet := s.now().Sub(s.shownAt) < progressPace
	if !quiet {
		s.shownAt = s.now()
	}
	s.mu.Unlock()
	if !quiet {
		s.changed()
	}
}

func (s *Tasks) wire() dto.Tasks {
	s.mu.Lock()
	defer s.mu.Unlock()
	wire := dto.Tasks{Ended: slices.Clone(dto.List(s.ended))}
	if s.running != nil {
		running := *s.running
		wire.Running = &running
	}
	return wire
}

// Event returns the running task's text for the event stream.
func (s *Tasks) Event() string {
	body, err := httpjson.Encode(dto.Progress{Running: s.wire().Running})
	if err != nil {
		panic(err) // only strings and numbers
	}
	return string(body)
}

// Close blocks new tasks and waits for the running one, whose context has ended.
func (s *Tasks) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.group.Wait()
}

// runTask runs one task and returns its result as text. It then inspects the
// storage again and records its size, so that every page is current.
func (s *Tasks) runTask(ctx context.Context, task maintain.Task, care maintain.Maintenance) (string, error) {
	care.OnProgress = s.progress
	result, err := carryOut(ctx, task, care)
	s.log.Info("maintenance from the page", "work", task, "result", result, "err", err)
	if recordErr := check.RecordSizes(ctx, care.Worker()); recordErr != nil && ctx.Err() == nil {
		s.log.Warn("the storage's size could not be recorded", "err", recordErr)
	}
	report, lookErr := s.storage.look(ctx)
	if err == nil && task == maintain.TaskCheck {
		return "Everything was read: " + report.Summary().Words() + ".", lookErr
	}
	return result, err
}

// carryOut runs a task and returns its result as a sentence.
func carryOut(ctx context.Context, task maintain.Task, care maintain.Maintenance) (string, error) {
	switch task {
	case maintain.TaskBackup:
		made, err := care.Snapshots().Backup(ctx)
		if err != nil {
			return "", err
		}
		result := fmt.Sprintf("%s were copied and verified: %s.", bridge.Counted(made.Files, "file"), filepath.Base(made.Path))
		if len(made.Moved) > 0 {
			result += fmt.Sprintf(" Older ones moved to the archive: %d.", len(made.Moved))
		}
		return result, nil
	case maintain.TaskTest:
		result, err := care.Restores().Test(ctx, "")
		if err != nil {
			return "", err
		}
		return result.Detail + ": " + result.Snapshot + ".", nil
	case maintain.TaskArchive:
		done, err := care.Archive().Messages(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Messages moved to the archive: %d.", done.Messages), nil
	default: // a check: the inspection after every task does it
		return "", nil
	}
}

// Sizes answers GET /api/storage/sizes: the home's size over time.
func (s *Tasks) Sizes(w http.ResponseWriter, _ *http.Request) error {
	if s.care == nil {
		return httpjson.WriteJSON(w, dto.Sizes{Points: []dto.SizePoint{}})
	}
	points, err := check.Sizes(s.care().Home)
	if err != nil {
		return fmt.Errorf("read the record of sizes: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Sizes{Points: dto.Each(points, func(p check.SizePoint) dto.SizePoint {
		return dto.SizePoint{At: p.At, Total: p.Total, Parts: p.Parts}
	})})
}
