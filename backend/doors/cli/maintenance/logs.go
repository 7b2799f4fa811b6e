package maintenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
)

// logPace is the time between two looks at a log that is followed.
const logPace = 250 * time.Millisecond

// Logs returns `bridge logs`.
func Logs(r command.Run) *cobra.Command {
	var count int
	var follow bool
	cmd := &cobra.Command{
		Use: "logs", Short: "Show the last lines of the broker's log, or follow it", Args: usage.None,
		Example: "  bridge logs -n 100\n  bridge logs -f",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 {
				return &outcome.UsageError{Err: errors.New("-n must be 1 or more")}
			}
			ctx := cmd.Context()
			if follow {
				var stop context.CancelFunc
				ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
				defer stop()
			}
			home, err := r.ReadHome()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(home.Log())
			if errors.Is(err, fs.ErrNotExist) && !follow {
				return bridge.Errorf(bridge.NotFound, "no broker has written %s yet", home.Log())
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("read the log: %w", err)
			}
			if _, err := io.WriteString(r.Stdout, lastLines(data, count)); err != nil || !follow {
				return err
			}
			return followLog(ctx, home.Log(), int64(len(data)), r.Stdout)
		},
	}
	cmd.Flags().IntVarP(&count, "lines", "n", 50, "how many lines")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show new lines as they come, until you press Ctrl-C")
	return cmd
}

func lastLines(data []byte, count int) string {
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines[max(0, len(lines)-count):], "")
}

// followLog writes what comes after the offset, until ctx ends. A log that got shorter was
// rotated: it is read from its beginning.
func followLog(ctx context.Context, path string, offset int64, out io.Writer) error {
	ticker := time.NewTicker(logPace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			offset = 0
			continue
		}
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if int64(len(data)) < offset {
			offset = 0
		}
		complete := int64(bytes.LastIndexByte(data, '\n') + 1) // a line is written whole
		if complete > offset {
			if _, err := out.Write(data[offset:complete]); err != nil {
				return err
			}
			offset = complete
		}
	}
}
