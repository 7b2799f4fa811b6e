package maintenance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bridge/backend/agent/prove"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/doors/daemon"
	"bridge/backend/platform/config"
	"bridge/backend/platform/proc"
)

// endPatience is how long a terminated try may take to end the agent and remove its home.
const endPatience = 15 * time.Second

// Prover returns how a broker tries agents: by a child process `bridge prove` at the lowest
// priority, in the environment that environ returns. It is nil on a system that cannot run
// an agent without a network.
func Prover(program string, home config.Home, environ func() []string) *daemon.Prover {
	if prove.Check() != nil {
		return nil
	}
	run := func(ctx context.Context, kind bridge.AgentKind) (proof.Proof, error) {
		program, err := proc.ProgramOr(program)
		if err != nil {
			return proof.Proof{}, err
		}
		return proveChild(ctx, kind, environ(), program, "prove", string(kind), "--json", "--"+recordFlag+"=false", "--home", home.Dir())
	}
	return &daemon.Prover{Kinds: prove.Kinds(), Run: run}
}

// proveChild runs a child that prints what `bridge prove --json` prints. It fails with the
// child's own sentence if that tried nothing.
func proveChild(ctx context.Context, kind bridge.AgentKind, environ []string, program string, args ...string) (proof.Proof, error) {
	var out, errs bytes.Buffer
	nice, err := exec.LookPath("nice")
	if err != nil {
		nice = "/usr/bin/nice" // this broker's PATH may hold agents only
	}
	cmd := exec.CommandContext(ctx, nice, append([]string{"-n", "19", program}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = environ, &out, &errs, endPatience
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends the agent first
	err = cmd.Run()
	var answer struct {
		proved
		Error string `json:"error"`
	}
	if parsed := json.Unmarshal(out.Bytes(), &answer); parsed == nil {
		for _, report := range answer.Agents {
			if report.Kind == kind {
				return proofOf(report), nil
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	reason := cmp.Or(answer.Error, lines[len(lines)-1])
	if reason == "" && err != nil {
		reason = err.Error()
	}
	return proof.Proof{}, bridge.Errorf(bridge.Unavailable, "%s", cmp.Or(reason, "it printed no result"))
}
