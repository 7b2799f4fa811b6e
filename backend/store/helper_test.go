package store

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain plays a part in another process when the environment asks for it.
func TestMain(m *testing.M) {
	part, ok := helperParts[os.Getenv(helperEnv)]
	if !ok {
		// Every action of the model is a synced commit; -rapid.checks asks for more.
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m)
		return
	}
	if err := part(context.Background(), os.Getenv(helperArgs)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var helperParts = map[string]func(ctx context.Context, args string) error{
	"index": indexUntilKilled,
	"lock": func(ctx context.Context, path string) error {
		if _, err := AcquireLock(ctx, path); err != nil {
			return err
		}
		fmt.Println("locked")
		_, err := io.Copy(io.Discard, os.Stdin) // until the parent kills it
		return err
	},
}

// makerDSN is writerDSN for a file that may have to be made.
func makerDSN(path string) string { return strings.Replace(writerDSN(path), "&mode=rw&", "&", 1) }
