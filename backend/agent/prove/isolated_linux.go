package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
)

// Check returns nil: this system can run an agent without a network.
func Check() error { return nil }

// Do tries the routes in namespaces without a network, by starting this program again. It
// fails with Denied if the system permits no namespaces: the agent is not started then.
func (r Run) Do(ctx context.Context) (Report, error) {
	var out, errs bytes.Buffer
	program := r.Program
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	args := []string{InsideCommand, string(r.Kind), r.Program, "--timeout", r.StepTimeout.String()}
	for _, route := range r.Only {
		args = append(args, "--route", string(route))
	}
	code, _, err := scripted.Isolate(ctx, scripted.Isolation{Args: args, Keep: []string{r.Program, program}, Stdout: &out, Stderr: &errs})
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("try %s: %w", r.Kind, ctx.Err())
	}
	if err != nil {
		return Report{}, noNamespaces(err)
	}
	var answer Answer
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return Report{}, bridge.Errorf(bridge.Internal, "the run in namespaces ended with code %d and said %q", code, strings.TrimSpace(errs.String()))
	}
	if answer.Error != "" {
		return Report{}, bridge.Errorf(answer.Code, "%s", answer.Error)
	}
	return answer.Report, nil
}

// noNamespaces returns the error for a system that permits no namespaces.
func noNamespaces(err error) error {
	return bridge.WithCause(bridge.Denied, err, "Bridge starts no agent here: this system permits no network namespace without a way out ("+err.Error()+"). "+
		"Allow user namespaces: set user.max_user_namespaces above 0, kernel.unprivileged_userns_clone to 1 on Debian, "+
		"kernel.apparmor_restrict_unprivileged_userns to 0 on Ubuntu. In a container its host must allow them")
}

// Inside tries the routes in the namespaces that Do made. It fails with Denied in any
// other place, and before it starts anything.
func (r Run) Inside(ctx context.Context) (Report, error) {
	if !scripted.Isolated() {
		return Report{}, bridge.Errorf(bridge.Denied, "only `bridge prove` starts this command")
	}
	if err := scripted.Enter(); err != nil {
		var known *bridge.Error
		if errors.As(err, &known) {
			return Report{}, err
		}
		return Report{}, noNamespaces(err)
	}
	return r.Walk(ctx)
}
