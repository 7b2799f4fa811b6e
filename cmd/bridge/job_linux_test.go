package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func init() {
	jobPrograms = map[string]func(){
		"left":       func() { exitWith(left(os.Args[1:])) },
		"killrunner": func() { exitWith(killRunner()) },
		"brokerenv":  func() { exitWith(brokerEnv()) },
		// typed SHELL LINE: the line is typed into the shell on a terminal; \t is the Tab key.
		"typed": func() { exitWith(printTyped(os.Args[1], os.Args[2])) },
	}
}

// left DIR N: so many processes that sleep work in that folder.
func left(args []string) error {
	folder, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	n := 0
	for _, line := range lines {
		command, err := os.ReadFile(line)
		at, cwdErr := os.Readlink(filepath.Join(filepath.Dir(line), "cwd"))
		if errors.Join(err, cwdErr) == nil && at == folder && bytes.HasPrefix(command, []byte("sleep\x001000\x00")) {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d sleep in %s, want %d", n, folder, want)
	}
	return nil
}

// killrunner kills the runner of the only job.
func killRunner() error {
	states, err := filepath.Glob(filepath.Join(os.Getenv("BRIDGE_HOME"), "jobs", "*", "state.json"))
	if err != nil || len(states) != 1 {
		return fmt.Errorf("there are %d jobs, %w", len(states), err)
	}
	data, err := os.ReadFile(states[0])
	if err != nil {
		return err
	}
	var state struct {
		Runner struct{ PID int }
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return err
	}
	return syscall.Kill(state.Runner.PID, syscall.SIGKILL)
}

// brokerEnv prints the environment of the home's broker, a variable a line.
func brokerEnv() error {
	broker, err := brokerOf()
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", broker.PID))
	if err == nil {
		_, err = os.Stdout.Write(bytes.ReplaceAll(raw, []byte{0}, []byte{'\n'}))
	}
	return err
}
