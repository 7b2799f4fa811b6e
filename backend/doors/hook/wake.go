package hook

import (
	"context"
	"io"
	"os"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// The times of a hook that waits in the background of an idle session
// (hooks.WakeEvent).
const (
	// wakeLife bounds one wait; the host's own limit is a little longer.
	wakeLife = 7000 * time.Second
	// wakeRetry is the pause of a waiting hook between attempts to find a broker.
	wakeRetry = 2 * time.Second
	// wakeLook is the interval at which a waiting hook checks that its agent still runs.
	wakeLook = 15 * time.Second
)

// ExitWake makes the host start a turn with the text on standard error.
const ExitWake = 2

// RunWake waits until the idle session must wake up. It then writes the text for
// the model to errorOutput and returns ExitWake. In all other cases it returns 0,
// which the host ignores. It never delays a turn: the host runs it in the
// background.
func RunWake(ctx context.Context, opts Options, kind bridge.AgentKind, standby bool, input io.Reader, errorOutput io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, wakeLife)
	defer cancel()
	adapter := hooks.For(kind)
	call, err := adapter.ParseHook(adapter.NameOf(session.EventStop), readInputWithin(ctx, input))
	if err != nil || call.ChildID != "" {
		return 0
	}
	var above []proc.Process
	for _, p := range proc.Ancestors(os.Getpid(), maxAncestors) {
		above = append(above, p)
		call.Ancestors = append(call.Ancestors, p.PID)
	}
	go endWithAgent(ctx, cancel, above, wakeLook)
	for ctx.Err() == nil {
		if code, done := waitOnce(ctx, opts, api.WakeWait{Call: call, Standby: standby}, errorOutput); done {
			return code
		}
		ipc.Pause(ctx, wakeRetry) // the broker died: ask the next one
	}
	return 0
}

// readInputWithin reads the host's JSON, which arrives at once or never.
func readInputWithin(ctx context.Context, input io.Reader) []byte {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	return readInput(ctx, input)
}

// waitOnce waits on one broker. done reports that the wait is finally over.
func waitOnce(ctx context.Context, opts Options, wait api.WakeWait, errorOutput io.Writer) (code int, done bool) {
	token, err := opts.Home.ExistingToken()
	if err != nil {
		return 0, true // no bridge runs in this home
	}
	target := ipc.Target{Socket: opts.Home.Socket(), Token: string(token)}
	client, err := ipc.Dial(ctx, target, ipc.Hello{Role: api.RoleHook, PID: os.Getpid(), Version: opts.Version})
	if err != nil {
		return 0, bridge.CodeOf(err) != bridge.Unavailable
	}
	defer client.Close()
	reply, err := client.WakeWait(ctx, wait)
	if err != nil {
		return 0, bridge.CodeOf(err) != bridge.Unavailable
	}
	if reply.Text == "" || reply.Lease == nil {
		return 0, true
	}
	if _, err := io.WriteString(errorOutput, reply.Text+"\n"); err != nil {
		return 0, true // the lease ends with the connection: the mail stays unread
	}
	ackHandover(ctx, opts, client, api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaWakeHook})
	return ExitWake, true
}

// endWithAgent cancels the wait when the agent has ended.
func endWithAgent(ctx context.Context, cancel context.CancelFunc, above []proc.Process, look time.Duration) {
	for ipc.Pause(ctx, look) {
		for _, p := range above[:min(len(above), agentDistance)] {
			if !proc.Alive(p.PID) {
				cancel()
				return
			}
		}
	}
}

// agentDistance is how many processes directly above the hook must run: the shell
// that ran it, and the agent.
const agentDistance = 2
