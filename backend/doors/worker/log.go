package worker

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// The sizes of the rotated log.
const (
	logMegabytes = 5
	logKept      = 3
)

// OpenLog opens the home's rotated log, which all programs of Bridge share. It
// writes nothing and creates no folder before the first line.
func OpenLog(home config.Home, getenv func(string) string) (*slog.Logger, func()) {
	level := slog.LevelInfo
	if settings, err := home.Settings(getenv); err == nil {
		level = settings.LogLevel
	}
	file := &logFile{home: home, Logger: lumberjack.Logger{Filename: home.Log(), MaxSize: logMegabytes, MaxBackups: logKept}}
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: level})), func() { _ = file.Close() }
}

// logFile creates the log's folder with access for the owner only; the library
// would create it for everyone. It drops lines about a removed home, because a log
// must not create a home.
type logFile struct {
	home config.Home
	lock sync.Mutex // guards made
	made bool
	lumberjack.Logger
}

func (l *logFile) Write(line []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.made {
		if _, err := os.Stat(l.home.Dir()); errors.Is(err, fs.ErrNotExist) {
			return len(line), nil
		}
		l.made = disk.MakeDir(l.home.Logs()) == nil // if it fails, so does the write
	}
	return l.Logger.Write(line)
}
