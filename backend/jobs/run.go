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

// run is the state of a job's run while a runner has it.
type run struct {
	job    string
	number int
	token  string
	conn   *ipc.Conn // of its runner; nil if none is connected
	// orders are the orders without a reported outcome, oldest first, as in the job's
	// orders.json.
	orders   []api.Order
	sentHere map[string]bool // orders sent on this connection
	sent     map[string]bool // orders sent on any connection of the runner, by this or an earlier broker
	more     chan struct{}   // closed when there is another order or another connection
	// late are messages that came too late for this run: the next run begins with them.
	forNextRun []string
	// said are the ids of all messages that it was sent, also those with a known outcome.
	messageIDs []string
	started    map[string]bool // orders that began, once the run has ended, from jobfiles.StartedDeliveries
	approvals  map[string]job.Approval
	agents     []job.Process   // as its runner recorded them
	notified   map[string]bool // the recipients to whom this process sent each approval
	step       string
	model      string // the model that its agent uses; the job's own model is also for the next run
	nextTurn   bool   // a message waits for the end of the current turn
	launching  bool   // this process is starting its runner
	// unread is the error of reading orders.json. Until the file can be read, it stays unchanged
	// and the run accepts no messages. Meanwhile unheard collects the runner's outcomes.
	unread    error
	unheard   []api.OrderOutcome
	delivered bool // its result message is durable, and its records are open
	// isLeft reports that some processes could not be ended: they stay recorded as the job's.
	isLeft bool
}

func newRun(name string, number int, token string) *run {
	return &run{
		job: name, number: number, token: token, sentHere: map[string]bool{}, sent: map[string]bool{}, more: make(chan struct{}),
		approvals: map[string]job.Approval{}, notified: map[string]bool{},
	}
}

// undelivered returns the messages that the run has not received.
func (r *run) undelivered() []string {
	texts := slices.Clone(r.forNextRun)
	for _, order := range r.orders {
		if order.Kind == api.OrderMessage && !r.started[order.ID] {
			texts = append(texts, order.Text)
		}
	}
	return texts
}

// unclear returns the messages of an ended run that its agent may have received.
func (r *run) unclear() (texts []string) {
	for _, order := range r.orders {
		if order.Kind == api.OrderMessage && r.started[order.ID] {
			texts = append(texts, order.Text)
		}
	}
	return texts
}

// notify wakes the callers that wait for orders.
func (r *run) notify() {
	close(r.more)
	r.more = make(chan struct{})
}

// ordersFile is jobs/<name>/orders.json: the runner's orders without a reported
// outcome. Only the broker writes it.
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
	data, err := json.Marshal(ordersFile{Run: r.number, Orders: r.orders, Late: r.forNextRun, Said: r.messageIDs})
	if err == nil {
		err = disk.MakeDir(j.files.Folder(r.job)) // the run may not have begun
	}
	if err != nil {
		return err
	}
	return disk.WriteAtomic(j.ordersPath(r.job), data, disk.PrivateFile)
}

// orderLocked adds a durable order for the runner of a job. A repeated id has no
// effect.
func (j *core) orderLocked(r *run, order api.Order) error {
	unread := j.runners.mendLocked(r)
	if slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.ID == order.ID }) {
		return nil
	}
	if unread != nil && order.Kind == api.OrderCancel { // the registry already records the cancel
		r.orders = append(r.orders, order)
		r.notify()
		return nil
	}
	if unread != nil {
		return unread
	}
	r.orders = append(r.orders, order)
	if order.Kind == api.OrderMessage || order.Kind == api.OrderGoOn {
		r.messageIDs = append(r.messageIDs, order.ID)
	}
	if err := j.saveLocked(r); err != nil {
		r.orders = r.orders[:len(r.orders)-1]
		r.messageIDs = slices.DeleteFunc(r.messageIDs, func(id string) bool { return id == order.ID })
		return bridge.WithCause(bridge.Storage, err, "it could not be recorded: "+disk.Reason(err))
	}
	r.notify()
	return nil
}

// mendLocked retries to read the orders of a run. It returns an error if they still
// cannot be read.
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
	r.notify()
	return nil
}

// canHear refuses a message for a job whose orders cannot be read.
func (j *runners) canHear(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.runs[name]; r != nil {
		return j.mendLocked(r)
	}
	return nil
}

// reopen restores the run of a job that was active when the last broker ended. A
// damaged file affects only this job.
func (j *core) reopen(entry job.Job) {
	r := newRun(entry.Name, entry.Run, "")
	j.runs[entry.Name] = r
	spec, err := j.files.ReadSpec(entry.Name)
	if err == nil && spec.Run == entry.Run {
		r.token = spec.Token
	}
	if state, err := j.files.ReadState(entry.Name); err == nil && state.Run == entry.Run {
		r.agents = state.Processes
		if state.Runner.PID > 0 {
			entry.Host = &job.Host{PID: state.Runner.PID, Identity: state.Runner.Identity}
		}
	}
	j.recordProcessesLocked(r, entry.Host)
	if r.unread = j.readOrders(r); r.unread != nil {
		j.opts.Log.Error("jobs: one cannot be told anything", "job", entry.Name, "err", r.unread)
	}
	cancelRequested := slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.Kind == api.OrderCancel })
	if entry.CancelAsked && !cancelRequested { // the broker died between the registry and the order
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
		r.orders, r.forNextRun, r.messageIDs = file.Orders, file.Late, file.Said
		for _, order := range r.orders {
			r.sent[order.ID] = true // this is not certain
		}
	}
	return nil
}
