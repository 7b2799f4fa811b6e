package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

const (
	// modLook is how often the child of a mod looks whether its claude still runs.
	modLook = time.Second
	// reportPatience is how long a mod's report waits for a broker.
	reportPatience = 20 * time.Second
	// modReportBytes bounds a report.
	modReportBytes = 64 << 10
)

// RunMod is the child process of claude's mod in one conversation: it streams
// what the broker has for the mod as JSON lines (api.ModReply), until ctx or the
// process above it ends. A broker that is away is waited for; starting one is the
// session's business.
func RunMod(ctx context.Context, opts Options, wait api.ModWait, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go endWithParent(ctx, cancel)
	lines := json.NewEncoder(output)
	for ctx.Err() == nil {
		if err := followMod(ctx, opts, &wait, lines); err != nil {
			return err
		}
		if wait.Line != "" { // nobody knows what waits while no broker runs
			wait.Line = ""
			if err := lines.Encode(api.ModReply{Line: &wait.Line}); err != nil {
				return nil // the mod has gone
			}
		}
		ipc.Pause(ctx, wakeRetry)
	}
	return nil
}

// followMod streams from one broker until its connection ends. An error is for
// good.
func followMod(ctx context.Context, opts Options, wait *api.ModWait, lines *json.Encoder) error {
	client, err := dialAsMod(ctx, opts)
	if err != nil {
		return lasting(err)
	}
	defer client.Close()
	for {
		reply, err := client.Mod(ctx, *wait)
		if err != nil {
			return lasting(err)
		}
		if reply.Line != nil {
			wait.Line = *reply.Line
		}
		if err := lines.Encode(reply); err != nil {
			return fmt.Errorf("telling the mod: %w", err)
		}
	}
}

// lasting is an error that no other broker will mend, else nil.
func lasting(err error) error {
	if bridge.CodeOf(err) == bridge.Unavailable {
		return nil
	}
	return err
}

func dialAsMod(ctx context.Context, opts Options) (*ipc.Client, error) {
	token, err := opts.Home.ExistingToken()
	if err != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "no bridge has run in this home yet")
	}
	target := ipc.Target{Socket: opts.Home.Socket(), Token: string(token)}
	return ipc.Dial(ctx, target, ipc.Hello{Role: api.RoleMod, PID: os.Getpid(), Version: opts.Version})
}

// ReportMod passes one report of the mod on, to the next broker where none runs.
// What none hears in time is found by the prompt's own trace.
func ReportMod(ctx context.Context, opts Options, input io.Reader) error {
	var report api.ModReport
	raw, err := io.ReadAll(io.LimitReader(input, modReportBytes))
	if err != nil {
		return fmt.Errorf("reading the mod's report: %w", err)
	}
	if err := bridge.DecodeAdditive(raw, modReportBytes, &report); err != nil {
		return err
	}
	if err := report.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	for ctx.Err() == nil {
		err = tellMod(ctx, opts, report)
		if bridge.CodeOf(err) != bridge.Unavailable {
			return err
		}
		if report.Event == api.ModTurnEnded || report.Event == api.ModTurnStarted {
			return nil // the next broker asks anew
		}
		ipc.Pause(ctx, wakeRetry)
	}
	return err
}

func tellMod(ctx context.Context, opts Options, report api.ModReport) error {
	client, err := dialAsMod(ctx, opts)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ModReport(ctx, report)
}

// endWithParent ends ctx when the process above this one has ended: nobody reads
// any more.
func endWithParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	for ipc.Pause(ctx, modLook) {
		if os.Getppid() != parent || !proc.Alive(parent) {
			cancel()
			return
		}
	}
}
