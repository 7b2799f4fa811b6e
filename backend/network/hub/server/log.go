package server

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
)

// engineLog takes what the engine logs, and names the PC that a line is about: its own
// lines know connections and keys only.
type engineLog struct {
	log   *slog.Logger
	named func(connection uint64) (id, name string)
	// refused is told what the engine did not take of a PC. The engine may hold its locks.
	refused func(pc, why string)
	// failed is told of each warning and error. The engine may hold its locks.
	failed func(line string)
}

var connectionOf = regexp.MustCompile(`\bcid:(\d+)\b`)

func (l engineLog) write(level slog.Level, format string, args []any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	line := fmt.Sprintf(format, args...)
	var pc []any
	if found := connectionOf.FindStringSubmatch(line); found != nil {
		if id, err := strconv.ParseUint(found[1], 10, 64); err == nil {
			if whose, name := l.named(id); name != "" {
				pc = []any{"pc", name}
				if why := refusedBy(line); why != "" {
					l.refused(whose, why)
				}
			}
		}
	}
	l.log.Log(context.Background(), level, line, pc...)
}

// Noticef is what the engine says of its course.
func (l engineLog) Noticef(format string, v ...any) { l.write(slog.LevelInfo, format, v) }

// Warnf is what may need somebody.
func (l engineLog) Warnf(format string, v ...any) {
	l.failed(fmt.Sprintf(format, v...))
	l.write(slog.LevelWarn, format, v)
}

// Errorf is what went wrong, and what was refused.
func (l engineLog) Errorf(format string, v ...any) {
	l.failed(fmt.Sprintf(format, v...))
	l.write(slog.LevelError, format, v)
}

// Fatalf is what the engine cannot go on after. It does not end the process: who opened
// the hub sees that it does not come up, or has ended.
func (l engineLog) Fatalf(format string, v ...any) { l.write(slog.LevelError, format, v) }

// Debugf is for whoever looks for a fault.
func (l engineLog) Debugf(format string, v ...any) { l.write(slog.LevelDebug, format, v) }

// Tracef would be every message.
func (l engineLog) Tracef(string, ...any) {}
