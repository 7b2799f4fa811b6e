// Command bridge is the one of cmd/bridge whose runners wait at a step of their run
// where the prompt has a line "at STEP", so that something can be killed just there:
// the file at-RUN-STEP in the job's folder says that it is reached, and it goes on when
// go-RUN-STEP is there.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bridge/backend/cli"
	"bridge/backend/runner"
	"bridge/frontend"
)

func main() {
	app := &cli.App{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: time.Now, Page: frontend.Page(), Version: "soak",
	}
	if len(os.Args) > 2 && os.Args[1] == "run-job" {
		app.RunnerAt = func(at runner.Step) { wait(os.Args[2], at) }
	}
	os.Exit(app.Run(context.Background()))
}

// wait waits at a step that the prompt of the run names.
func wait(folder string, at runner.Step) {
	data, err := os.ReadFile(filepath.Join(folder, "spec.json"))
	var spec struct {
		Run    int
		Prompt string
	}
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err != nil {
		panic(err)
	}
	if !slices.Contains(strings.Split(spec.Prompt, "\n"), "at "+string(at)) {
		return
	}
	name := fmt.Sprintf("-%d-%s", spec.Run, at)
	if err := os.WriteFile(filepath.Join(folder, "at"+name), nil, 0o600); err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go"+name)); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		<-time.After(time.Millisecond)
	}
}
