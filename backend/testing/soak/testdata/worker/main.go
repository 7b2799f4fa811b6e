// Command worker is cmd/bridge-worker, but waits at a step of its run where the prompt has a
// line "at STEP", so that something can be killed just there: the file at-RUN-STEP in the
// job's folder says that it is reached, and it goes on when go-RUN-STEP is there.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bridge/backend/doors/worker/runjob"
	"bridge/backend/jobs/runner"
)

func main() {
	os.Exit(runjob.Main("soak", time.Now, func(at runner.Step) { wait(os.Args[2], at) }))
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
