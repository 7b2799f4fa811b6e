//go:build amd64 || arm64

package faults

import (
	"fmt"
	"os"
	"testing"

	"bridge/backend/agent/driver/standin"
	"bridge/backend/testing/testkit"
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
	dir, err := os.MkdirTemp("", "faults-bin")
	if err == nil {
		defer os.RemoveAll(dir)
		program, err = testkit.Product(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testkit.Away(m)
}

// stride is how many calls are passed over between two that fail: in a long run every
// call of every command fails once.
func stride(t *testing.T, short int) int {
	t.Helper()
	return testkit.Stride(t, short)
}
