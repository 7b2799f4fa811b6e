package terminal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// Progress shows the progress of long work on a terminal, on one temporary line.
// Elsewhere it prints nothing.
type Progress struct {
	out   *os.File // nil if no progress is shown
	now   func() time.Time
	shown time.Time
	width int
}

// progressPace is the minimum time between two lines.
const progressPace = 100 * time.Millisecond

// NewProgress returns the progress for the result of Writer.
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	out, _ := File(w)
	return &Progress{out: out, now: now}
}

// Tell shows how much of a step is done.
func (p *Progress) Tell(what string, done, all int64) {
	if p.out == nil || all <= 0 || p.now().Sub(p.shown) < progressPace {
		return
	}
	p.shown = p.now()
	line := fmt.Sprintf("%3d%% %s", done*100/all, bridge.VisibleLine(filepath.ToSlash(what)))
	line = Fit(p.out, line)
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = max(p.width, utf8.RuneCountInString(line))
}

// End removes the line.
func (p *Progress) End() {
	if p.out != nil && p.width > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
