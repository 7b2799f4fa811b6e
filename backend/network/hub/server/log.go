package server

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
)

// engineLog writes the engine's log, and adds the PC that a line is about: the engine's
// lines name connections and keys only.
type engineLog struct {
	log   *slog.Logger
	named func(connection uint64) (id, name string)
	// refused is called for refusals of a PC. The engine may hold its locks.
	refused func(pc, why string)
	// failed is called for each warning and error. The engine may hold its locks.
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

// Noticef logs the engine's progress.
func (l engineLog) Noticef(format string, v ...any) { l.write(slog.LevelInfo, format, v) }

// Warnf logs what may need attention.
func (l engineLog) Warnf(format string, v ...any) {
	l.failed(fmt.Sprintf(format, v...))
	l.write(slog.LevelWarn, format, v)
}

// Errorf logs errors and refusals.
func (l engineLog) Errorf(format string, v ...any) {
	l.failed(fmt.Sprintf(format, v...))
	l.write(slog.LevelError, format, v)
}

// Fatalf logs an error after which the engine cannot continue. It does not end the
// process: Open fails then, or Done is closed.
func (l engineLog) Fatalf(format string, v ...any) { l.write(slog.LevelError, format, v) }

// Debugf logs debugging output.
func (l engineLog) Debugf(format string, v ...any) { l.write(slog.LevelDebug, format, v) }

// Tracef drops the log of every message.
func (l engineLog) Tracef(string, ...any) {}
