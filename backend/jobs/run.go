package jobs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// run is what goes with a job while a runner has it.
type run struct {
	job    string
	number int
	token  string
	conn   *ipc.Conn // of its runner; nil while there is none
	// orders are those that the runner has told no outcome of, oldest first, as they
	// stand in the job's orders.json.
	orders []api.Order
	given  map[string]bool // to this connection
	handed map[string]bool // to any connection of the runner, of this or an earlier broker
	more   chan struct{}   // closed when there is another order, or another connection
	// late are words that came too late for this run: the next one begins with them.
	late []string
	// said are the ids of the words that it was told, also of those whose outcome is known.
	said      []string
	begun     map[string]bool // of orders, once the run has ended: what jobfiles.BegunToSay tells
	approvals map[string]job.Approval
	agents    []job.Process   // as its runner wrote them down
	asked     map[string]bool // whom this process has told of which approval
	step      string
	model     string // that its agent uses; the job's own is for the next run, too
	nextTurn  bool   // a message waits for the end of the turn that runs
	launching bool   // its runner is being started by this process
	// unread says why orders.json cannot be read. It stays as it is, and nobody can tell
	// the run anything before it can; what its runner says of it meanwhile is in unheard.
	unread    error
	unheard   []api.OrderOutcome
	delivered bool // its result message is durable, and its books are open
	// isLeft says that processes of it could not be ended: they stay known as the job's.
	isLeft bool
}

func newRun(name string, number int, token string) *run {
	return &run{
		job: name, number: number, token: token, given: map[string]bool{}, handed: map[string]bool{}, more: make(chan struct{}),
		approvals: map[string]job.Approval{}, asked: map[string]bool{},
	}
}

// unsaid are the words that the run has not heard.
func (r *run) unsaid() []string {
	words := slices.Clone(r.late)
	for _, order := range r.orders {
		if order.Kind == api.OrderMessage && !r.begun[order.ID] {
			words = append(words, order.Text)
		}
	}
	return words
}

// unclear are the words of an ended run that its agent may have, or may not.
func (r *run) unclear() (words []string) {
	for _, order := range r.orders {
		if order.Kind == api.OrderMessage && r.begun[order.ID] {
			words = append(words, order.Text)
		}
	}
	return words
}

// signal wakes whoever waits for orders.
func (r *run) signal() {
	close(r.more)
	r.more = make(chan struct{})
}

// ordersFile is jobs/<name>/orders.json: what a runner was told and has not said the
// outcome of. Only the broker writes it.
type ordersFile struct {
	Run    int         `json:"run"`
	Orders []api.Order `json:"orders"`
	Late   []string    `json:"late,omitempty"`
	Said   []string    `json:"said,omitempty"`
}

func (j *core) ordersPath(name string) string {
	return filepath.Join(j.files.Folder(name), "orders.json")
}

// saveLocked makes the orders of a run durable.
func (j *core) saveLocked(r *run) error {
	data, err := json.Marshal(ordersFile{Run: r.number, Orders: r.orders, Late: r.late, Said: r.said})
	if err == nil {
		err = disk.MakeDir(j.files.Folder(r.job)) // the run may not have begun
	}
	if err != nil {
		return err
	}
	return disk.WriteAtomic(j.ordersPath(r.job), data, disk.PrivateFile)
}

// orderLocked gives the runner of a job something to do, durably. The same id again
// is the same order.
func (j *core) orderLocked(r *run, order api.Order) error {
	unread := j.runners.mendLocked(r)
	if slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.ID == order.ID }) {
		return nil
	}
	if unread != nil && order.Kind == api.OrderCancel { // the registry has it
		r.orders = append(r.orders, order)
		r.signal()
		return nil
	}
	if unread != nil {
		return unread
	}
	r.orders = append(r.orders, order)
	if order.Kind == api.OrderMessage || order.Kind == api.OrderGoOn {
		r.said = append(r.said, order.ID)
	}
	if err := j.saveLocked(r); err != nil {
		r.orders = r.orders[:len(r.orders)-1]
		r.said = slices.DeleteFunc(r.said, func(id string) bool { return id == order.ID })
		return bridge.WithCause(bridge.Storage, err, "it could not be recorded: "+disk.Reason(err))
	}
	r.signal()
	return nil
}

// mendLocked reads the orders of a run that could not be read so far. An error is why
// they still cannot.
func (j *runners) mendLocked(r *run) error {
	if r.unread == nil {
		return nil
	}
	orders, unheard := r.orders, r.unheard
	if r.unread = j.readOrders(r); r.unread != nil {
		return r.unread
	}
	for _, order := range orders {
		if !slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.ID == order.ID }) {
			r.orders = append(r.orders, order)
		}
	}
	if err := j.settleLocked(r, unheard); err != nil {
		r.unread, r.orders = err, orders
		return err
	}
	r.unheard = nil
	r.signal()
	return nil
}

// canHear refuses words for a job whose orders cannot be read.
func (j *runners) canHear(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.runs[name]; r != nil {
		return j.mendLocked(r)
	}
	return nil
}

// reopen takes up the run of a job that was active when the last broker ended. What is
// damaged of it costs this job alone.
func (j *core) reopen(one job.Job) {
	r := newRun(one.Name, one.Run, "")
	j.runs[one.Name] = r
	spec, err := j.files.ReadSpec(one.Name)
	if err == nil && spec.Run == one.Run {
		r.token = spec.Token
	}
	if state, err := j.files.ReadState(one.Name); err == nil && state.Run == one.Run {
		r.agents = state.Processes
		if state.Runner.PID > 0 {
			one.Host = &job.Host{PID: state.Runner.PID, Identity: state.Runner.Identity}
		}
	}
	j.standsLocked(r, one.Host)
	if r.unread = j.readOrders(r); r.unread != nil {
		j.opts.Log.Error("jobs: one cannot be told anything", "job", one.Name, "err", r.unread)
	}
	asked := slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.Kind == api.OrderCancel })
	if one.CancelAsked && !asked { // the broker died between the two
		r.orders = append(r.orders, cancelOrder)
	}
}

func (j *core) readOrders(r *run) error {
	data, err := disk.ReadLimited(j.ordersPath(r.job), jobfiles.MaxEntryBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file ordersFile
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, "what "+r.job+" was told cannot be read, so it can be told nothing until this file is mended: "+j.ordersPath(r.job))
	}
	if file.Run == r.number {
		r.orders, r.late, r.said = file.Orders, file.Late, file.Said
		for _, order := range r.orders {
			r.handed[order.ID] = true // perhaps
		}
	}
	return nil
}
