package jobs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/disk"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
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
	more   chan struct{}   // closed when there is another order, or another connection
	// late are words that came too late for this run: the next one begins with them.
	late      []string
	approvals map[string]job.Approval
	step      string
	launching bool // its runner is being started by this process
}

func newRun(name string, number int, token string) *run {
	return &run{
		job: name, number: number, token: token, given: map[string]bool{}, more: make(chan struct{}),
		approvals: map[string]job.Approval{},
	}
}

// unsaid are the words that the run has not heard.
func (r *run) unsaid() []string {
	words := slices.Clone(r.late)
	for _, order := range r.orders {
		if order.Kind == api.OrderMessage {
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
}

func (j *core) ordersPath(name string) string { return filepath.Join(j.folder(name), "orders.json") }

// saveLocked makes the orders of a run durable.
func (j *core) saveLocked(r *run) error {
	data, err := json.Marshal(ordersFile{Run: r.number, Orders: r.orders, Late: r.late})
	if err != nil {
		return err
	}
	return disk.WriteAtomic(j.ordersPath(r.job), data, disk.PrivateFile)
}

// orderLocked gives the runner of a job something to do, durably. The same id again
// is the same order.
func (j *core) orderLocked(r *run, order api.Order) error {
	if slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.ID == order.ID }) {
		return nil
	}
	r.orders = append(r.orders, order)
	if err := j.saveLocked(r); err != nil {
		r.orders = r.orders[:len(r.orders)-1]
		return bridge.WithCause(bridge.Storage, err, "it could not be recorded: "+disk.Reason(err))
	}
	r.signal()
	return nil
}

// reopen takes up the run of a job that was active when the last broker ended.
func (j *core) reopen(one job.Job) error {
	r := newRun(one.Name, one.Run, "")
	j.runs[one.Name] = r
	spec, err := j.spec(one.Name)
	if err == nil && spec.Run == one.Run {
		r.token = spec.Token
	}
	if err := j.readOrders(r); err != nil {
		return bridge.WithCause(bridge.Storage, err, "what "+one.Name+" was told cannot be read: "+j.ordersPath(one.Name))
	}
	asked := slices.ContainsFunc(r.orders, func(o api.Order) bool { return o.Kind == api.OrderCancel })
	if one.CancelAsked && !asked { // the broker died between the two
		r.orders = append(r.orders, cancelOrder)
	}
	return nil
}

func (j *core) readOrders(r *run) error {
	data, err := disk.ReadLimited(j.ordersPath(r.job), maxRegistryBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file ordersFile
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err == nil && file.Run == r.number {
		r.orders, r.late = file.Orders, file.Late
	}
	return err
}

func (j *core) spec(name string) (job.SpecFile, error) {
	data, err := disk.ReadLimited(filepath.Join(j.folder(name), "spec.json"), maxRegistryBytes)
	if err != nil {
		return job.SpecFile{}, err
	}
	return job.DecodeSpec(data, name)
}
