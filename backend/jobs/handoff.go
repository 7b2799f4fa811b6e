package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// handOff makes another live session of this PC the supervisor of the named jobs. One write
// moves all of them or none (JOB-23). The new supervisor receives their later results.
func (j *supervision) handOff(ctx context.Context, conn *ipc.Conn, args api.HandoffArgs) (api.HandedOff, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, args.Caller)
	if err != nil {
		return api.HandedOff{}, err
	}
	if asker.InJob {
		return api.HandedOff{}, errInJob
	}
	if err := bridge.CheckID("the hand-off's id", args.ID); err != nil {
		return api.HandedOff{}, err
	}
	if before, has := j.receipt(args.ID); has && asker.Same(before.FromID) {
		return api.HandedOff{Moved: before.Jobs}, nil
	}
	if args.Handoff.To == "" {
		return api.HandedOff{}, bridge.Errorf(bridge.Invalid, "to must name the session that takes the jobs over")
	}
	address, err := j.opts.Broker.Live(args.Handoff.To)
	if err != nil {
		return api.HandedOff{}, err
	}
	receipt := job.HandoffReceipt{
		ID: args.ID, From: asker.Address.Name, FromID: asker.Address.ID, Agent: asker.Address.Agent, To: address.Name, ToID: address.ID,
		At: job.Millis(j.opts.Now().UnixMilli()), Note: args.Handoff.Note,
	}
	if receipt.Jobs, err = j.move(args.Handoff, job.Caller{Name: asker.Address.Name, ID: asker.Address.ID}, asker.Same, receipt); err != nil {
		return api.HandedOff{}, err
	}
	j.logged("tell of a hand-off", j.sendHandoff(ctx, receipt))
	j.logged("ask about an approval", j.approvals.put(ctx))
	return api.HandedOff{Moved: receipt.Jobs}, nil
}

// move writes a hand-off and its receipt together, or neither.
func (j *supervision) move(handoff job.Handoff, from job.Caller, isFrom func(string) bool, receipt job.HandoffReceipt) (moved []string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.file.Handoffs
	err = j.changeLocked(func(book *job.Registry) (err error) {
		caller := job.Caller{Name: receipt.To, ID: receipt.ToID}
		if moved, err = book.HandOff(handoff, from, caller, isFrom, receipt.At.Time()); err != nil {
			return err
		}
		receipt.Jobs = moved
		data, err := json.Marshal(receipt)
		j.file.Handoffs = append(slices.Clone(before), data)
		return err
	})
	if err != nil {
		j.file.Handoffs = before
	}
	return moved, err
}

// receipts returns the receipts that this program wrote, the newest last.
func (j *supervision) receipts() (ours []job.HandoffReceipt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, data := range j.file.Handoffs {
		var receipt job.HandoffReceipt
		if json.Unmarshal(data, &receipt) == nil && receipt.ID != "" {
			ours = append(ours, receipt)
		}
	}
	return ours
}

func (j *supervision) receipt(id string) (job.HandoffReceipt, bool) {
	ours := j.receipts()
	at := slices.IndexFunc(ours, func(r job.HandoffReceipt) bool { return r.ID == id })
	if at < 0 {
		return job.HandoffReceipt{}, false
	}
	return ours[at], true
}

// retold limits how many recent hand-offs a starting broker sends again. The last broker
// may have died before it sent the message; message ids prevent a second delivery.
const retold = 20

func (j *supervision) sendHandoffs() {
	ours := j.receipts()
	for _, receipt := range ours[max(0, len(ours)-retold):] {
		j.logged("tell of a hand-off", j.sendHandoff(j.tasks.Context(), receipt))
	}
}

// sendHandoff sends the new supervisor the list of its new jobs.
func (j *supervision) sendHandoff(ctx context.Context, receipt job.HandoffReceipt) error {
	body := fmt.Sprintf("%s has handed %s over to you: %s. Their results and questions come to you from now on.",
		receipt.From, bridge.Counted(len(receipt.Jobs), "job"), strings.Join(receipt.Jobs, ", "))
	if receipt.Note != "" {
		body += "\n\n" + receipt.Note
	}
	from := bridge.Address{ID: receipt.FromID, Name: receipt.From, Agent: receipt.Agent}
	id := "handoff-" + receipt.ID
	return j.opts.Broker.Deliver(ctx, from, receipt.ToID, api.SendArgs{To: receipt.To, MessageID: id, ConversationID: id, Body: body})
}
