// Package hook is the entry point for the agent CLIs' hooks and plugins: one short
// call that reports an event and returns text for the model. It is always quick and
// never fails the host's turn. After any error, the host gets a valid answer within
// the budget and the turn continues.
package hook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// Options configures a hook. All fields are required but CLIDataDir and Note.
type Options struct {
	Home    config.Home
	Version string
	// CLIDataDir is the folder of the agent CLI's own store; "" if unknown.
	CLIDataDir string
	// Note returns the text shown to a session at its start, read without a broker.
	// It is nil in a program that cannot read the store.
	Note func(ctx context.Context, call session.HookCall) string
	Now  func() time.Time
	Log  *slog.Logger
}

const (
	// budget bounds a whole hook call, because hosts wait for it.
	budget = time.Second
	// inputLimitBytes bounds a host's input: prompts and tool results can be large.
	inputLimitBytes = 16 << 20
	maxAncestors    = 8
)

// Run serves one hook call: JSON on input, the host's JSON on output. It returns no
// error: the host must never see one.
func Run(ctx context.Context, opts Options, kind bridge.AgentKind, event string, input io.Reader, output io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	adapter := hooks.For(kind)
	stdin := readInput(ctx, input)
	call, err := adapter.ParseHook(event, stdin)
	if err != nil {
		opts.Log.Debug("a hook call is not understood", "kind", kind, "event", event, "err", err)
		_ = writeOut(output, adapter.FormatHook(session.HookCall{}, "")) // a host that does not read loses no data
		return
	}
	call.CLIDataDir = opts.CLIDataDir
	answer(ctx, opts, adapter, call, output)
}

// answer queries the broker, writes the host's answer, and only then acknowledges
// its mail: the mail counts as handed over only after the bytes are written.
func answer(ctx context.Context, opts Options, adapter *hooks.Adapter, call session.HookCall, output io.Writer) {
	note := "" // read first: a broker that hangs must not prevent it
	if call.Event == session.EventStart && call.ChildID == "" {
		call.Ancestors = above() // they show whether this is another process than before
		if opts.Note != nil {
			note = opts.Note(ctx, call)
		}
	}
	client, reply := ask(ctx, opts, &call)
	if client != nil {
		defer client.Close()
	}
	text := joinNote(note, reply.Text)
	if writeOut(output, adapter.FormatHook(call, text)) != nil {
		return
	}
	if reply.Lease != nil {
		ackHandover(ctx, opts, client, api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaHook, Detail: call.HostEvent})
	}
	if note != "" && client != nil {
		reportNote(ctx, opts, client, call, note)
	}
}

// reportNote reports the size of a session-start note that was written (CTX-03).
func reportNote(ctx context.Context, opts Options, client *ipc.Client, call session.HookCall, note string) {
	cost := api.HostCost{SessionID: call.SessionID, Cost: session.Cost{Notes: int64(len(note))}}
	if err := client.ReportCost(ctx, api.CostReport{Agent: call.Kind, Costs: []api.HostCost{cost}}); err != nil {
		opts.Log.Debug("the size of a note is not counted", "err", err)
	}
}

// ackHandover reports to the broker that the bytes are written, or keeps the ack for
// the next broker.
func ackHandover(ctx context.Context, opts Options, client *ipc.Client, ack api.Ack) {
	if client.Ack(ctx, ack) == nil {
		return
	}
	if err := (ipc.Journal{Dir: opts.Home.ReadJournal()}).Keep(ack, opts.Now().UnixMilli()); err != nil {
		opts.Log.Error("an ack is lost: its mail will be shown again", "err", err)
	}
}

// ask reports the call to the broker. Without a broker it returns no mail.
func ask(ctx context.Context, opts Options, call *session.HookCall) (*ipc.Client, session.HookReply) {
	token, err := opts.Home.ExistingToken()
	if err != nil {
		return nil, session.HookReply{}
	}
	target := ipc.Target{Socket: opts.Home.Socket(), Token: string(token)}
	client, reply, err := ipc.DialHook(ctx, target, ipc.Hello{Role: api.RoleHook, PID: os.Getpid(), Version: opts.Version}, *call)
	if client == nil {
		return nil, session.HookReply{}
	}
	if err == nil && reply.Unknown { // the process list is only read for sessions that are not known yet
		call.Ancestors = above()
		reply, err = client.Hook(ctx, *call)
	}
	if err != nil {
		opts.Log.Warn("the broker did not serve a hook", "event", call.HostEvent, "err", err)
	}
	return client, reply
}

// above returns the processes above this one, nearest first.
func above() (pids []int) {
	for _, p := range proc.Ancestors(os.Getpid(), maxAncestors) {
		pids = append(pids, p.PID)
	}
	return pids
}

func joinNote(note, text string) string {
	switch {
	case note == "":
		return text
	case text == "":
		return note
	default:
		return note + "\n\n" + text
	}
}

// readInput reads the host's input, as far as it arrives within the budget.
func readInput(ctx context.Context, input io.Reader) []byte {
	read := make(chan []byte, 1) // the reader may outlive a call that timed out
	go func() {
		data, err := io.ReadAll(io.LimitReader(input, inputLimitBytes))
		if err != nil {
			data = nil
		}
		_, _ = io.Copy(io.Discard, input) // the input beyond the limit
		read <- data
	}()
	select {
	case data := <-read:
		return data
	case <-ctx.Done():
		return nil
	}
}

// drain reads and drops the host's input, as far as it arrives within the budget: a
// host must not write into a closed pipe.
func drain(ctx context.Context, input io.Reader) { readInputWithin(ctx, input) }

func writeOut(output io.Writer, answer []byte) error {
	_, err := fmt.Fprintf(output, "%s\n", answer)
	return err
}
