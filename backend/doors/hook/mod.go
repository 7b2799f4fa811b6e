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
	// modLook is the interval at which a mod's child checks that its Claude Code still runs.
	modLook = time.Second
	// reportPatience is how long a mod's report waits for a broker.
	reportPatience = 20 * time.Second
	// modReportBytes bounds the size of a report.
	modReportBytes = 64 << 10
)

// RunMod is the child process of Claude Code's mod in one conversation. It streams
// the broker's replies for the mod as JSON lines (api.ModReply), until ctx or the
// parent process ends. It waits for an absent broker; the session starts one. It
// fails for an error that no other broker fixes.
func RunMod(ctx context.Context, opts Options, wait api.ModWait, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go endWithParent(ctx, cancel)
	lines := json.NewEncoder(output)
	for ctx.Err() == nil {
		if err := followMod(ctx, opts, &wait, lines); err != nil {
			return err
		}
		if wait.Line != "" { // without a broker the number of waiting messages is unknown
			wait.Line = ""
			if err := lines.Encode(api.ModReply{Line: &wait.Line}); err != nil {
				return nil // the mod has ended
			}
		}
		ipc.Pause(ctx, wakeRetry)
	}
	return nil
}

// followMod streams from one broker until its connection ends. A returned error is
// permanent.
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

// lasting returns err if no other broker fixes it, else nil.
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

// ReportMod sends one report of the mod to the broker, or to the next broker if none
// runs. If none accepts it in time, the transcript still shows the prompt's outcome.
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
		err = reportMod(ctx, opts, report)
		if bridge.CodeOf(err) != bridge.Unavailable {
			return err
		}
		if report.Event == api.ModTurnEnded || report.Event == api.ModTurnStarted {
			return nil // the next broker asks again
		}
		ipc.Pause(ctx, wakeRetry)
	}
	return err
}

func reportMod(ctx context.Context, opts Options, report api.ModReport) error {
	client, err := dialAsMod(ctx, opts)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ModReport(ctx, report)
}

// endWithParent cancels ctx when the parent process has ended, because no process
// reads the output then.
func endWithParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	for ipc.Pause(ctx, modLook) {
		if os.Getppid() != parent || !proc.Alive(parent) {
			cancel()
			return
		}
	}
}
