package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bridge/backend/platform/ipc"
)

// hooks measures what a hook costs the agent that waits for it: the whole
// process with nothing to deliver, in turns with a Go program that does nothing
// and a Node process that does nothing. Then what one weighs that waits in the
// background of an idle session for hours.
func (l *lab) hooks(ctx context.Context) (err error) {
	programs, err := l.hookPrograms(ctx)
	if err != nil {
		return err
	}
	b, err := l.start(ctx, "hooks")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	if _, err := b.idleHost(ctx); err != nil { // the hook's session is known, as it is from its first hook on
		return err
	}
	if err := l.hookTimes(ctx, b, programs); err != nil {
		return err
	}
	return l.waitingHook(ctx, b, programs)
}

// hookPrograms are what is compared, each laid down as an installer does it: a
// linker writes a file in pieces, which the system then loads more slowly.
type hookPrograms struct{ empty, hook, bridge string }

func (l *lab) hookPrograms(ctx context.Context) (p hookPrograms, err error) {
	empty, err := l.emptyProgram(ctx)
	if err != nil {
		return p, err
	}
	for from, to := range map[string]*string{empty: &p.empty, filepath.Join(filepath.Dir(l.binary), "bridge-hook"): &p.hook, l.binary: &p.bridge} {
		data, err := os.ReadFile(from)
		if err != nil {
			return p, err
		}
		*to = filepath.Join(l.dir, "installed-"+filepath.Base(from))
		if err := os.WriteFile(*to, data, 0o700); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (l *lab) hookTimes(ctx context.Context, b *running, programs hookPrograms) (err error) {
	input := fmt.Sprintf(`{"session_id":"`+hostSession+`","cwd":%q,"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{},"tool_response":{}}`, l.dir)
	process := func(elapsed times, program string, args ...string) (times, error) {
		return repeat(elapsed, 1, func() error {
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Stdin = strings.NewReader(input)
			return cmd.Run()
		})
	}
	rounds := 200
	if l.quick {
		rounds = 60
	}
	node, noNode := exec.LookPath("node")
	var empties, hooks, longs, nodes times
	for round := range rounds {
		if empties, err = process(empties, programs.empty); err != nil {
			return err
		}
		if hooks, err = process(hooks, programs.hook, "claude", "PostToolUse", "--home", b.home.Dir()); err != nil {
			return err
		}
		if longs, err = process(longs, programs.bridge, "hook", "claude", "PostToolUse", "--home", b.home.Dir()); err != nil {
			return err
		}
		if noNode != nil || round%4 != 0 { // it takes far longer than the others
			continue
		}
		if nodes, err = process(nodes, node, "-e", "0"); err != nil {
			return err
		}
	}
	hook, nothing := hooks.at(0.5), empties.at(0.5)
	l.add(row{what: "hook with nothing to deliver", measured: fmt.Sprintf("%s p50, an empty Go program %s", hook, nothing), value: ratio(hook, nothing), goal: "<= 2.0 x empty", bound: 2})
	if noNode != nil {
		fmt.Fprintln(os.Stderr, "bench: node is not on PATH: the hook is not compared with it")
	} else {
		l.add(row{what: "the same", measured: fmt.Sprintf("%s p50, node %s", hook, nodes.at(0.5)), value: ratio(hook, nodes.at(0.5)), goal: "<= 0.06 x node -e 0", bound: 0.06})
	}
	l.add(row{what: "its long form, bridge hook", measured: fmt.Sprintf("%s p50", longs.at(0.5)), value: ratio(longs.at(0.5), nothing)})
	return nil
}

// emptyProgram builds a static Go program that does nothing.
func (l *lab) emptyProgram(ctx context.Context) (string, error) {
	dir := filepath.Join(l.dir, "empty")
	files := map[string]string{"go.mod": "module empty\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "empty")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build an empty program: %w\n%s", err, output)
	}
	return program, nil
}

// wakeHook starts claude's hook that waits in the background to wake an idle session.
// It returns once the hook waits, of which the broker knows then, with what it weighs.
func (b *running) wakeHook(ctx context.Context, program string, args ...string) (cmd *exec.Cmd, weight float64, err error) {
	cmd = exec.CommandContext(ctx, program, append(args, "claude", "Wake", "--home", b.home.Dir())...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"Stop"}`, hostSession, b.lab.dir))
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	if weight, err = settled(ctx, cmd.Process.Pid); err != nil {
		endHook(cmd)
	}
	return cmd, weight, err
}

// endHook ends a hook that would wait for hours.
func endHook(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}

// waitingHook measures what such a hook weighs.
func (l *lab) waitingHook(ctx context.Context, b *running, programs hookPrograms) error {
	weigh := func(program string, args ...string) (float64, error) {
		cmd, weight, err := b.wakeHook(ctx, program, args...)
		if err == nil {
			endHook(cmd)
		}
		return weight, err
	}
	short, err := weigh(programs.hook)
	if err != nil {
		return err
	}
	long, err := weigh(programs.bridge, "hook")
	if err != nil {
		return err
	}
	l.add(row{what: "a waiting wake hook: resident", measured: fmt.Sprintf("%.1f MiB, long form %.1f MiB", short, long), value: short, goal: "< 8 MiB", bound: 8})
	return nil
}

// settled is what a process weighs once that does not change any more.
func settled(ctx context.Context, pid int) (float64, error) {
	const looks, pause = 10, 100 * time.Millisecond
	before, same := 0.0, 0
	for same < looks {
		if !ipc.Pause(ctx, pause) {
			return 0, ctx.Err()
		}
		if weight := resident(pid); weight == before {
			same++
		} else {
			before, same = weight, 0
		}
	}
	return before, nil
}
