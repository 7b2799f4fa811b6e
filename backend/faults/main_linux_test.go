//go:build amd64 || arm64

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bridge/backend/agent/driver/standin"
	"bridge/backend/trial"
)

var program string // the real binary, with those that lie beside it

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == diskPart {
		if err := diskWorks[os.Args[2]](os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "standin" {
		standin.Run(os.Args[2:])
		os.Exit(0)
	}
	if os.Getenv(filterEnv) != "" {
		fmt.Fprintln(os.Stderr, becomeFiltered()) // it returns only when it fails
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := os.Setenv("BRIDGE_PORT", "0"); err != nil { // the default port is the developer's own
		panic(err)
	}
	if program = os.Getenv("BRIDGE_TEST_BIN"); program != "" {
		return trial.Away(m)
	}
	dir, err := os.MkdirTemp("", "faults-bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir, "../../cmd/bridge", "../../cmd/bridge-mcp", "../../cmd/bridge-worker")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building bridge: %v\n%s", err, out)
		return 1
	}
	program = filepath.Join(dir, "bridge")
	return trial.Away(m)
}

// stride is how many calls are passed over between two that fail: in a long run every
// call of every command fails once.
func stride(t *testing.T, short int) int {
	t.Helper()
	return trial.Stride(t, short)
}
