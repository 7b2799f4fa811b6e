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

	began      time.Time // when the present step began
	done, all  int64     // of the present step, at the last call
	beganAfter int64     // what was done at its begin
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
	if all <= 0 {
		return
	}
	if done < p.done || all != p.all || p.began.IsZero() {
		p.began, p.beganAfter, p.all = p.now(), done, all
	}
	p.done = done
	if p.out == nil || p.now().Sub(p.shown) < progressPace {
		return
	}
	p.shown = p.now()
	line := p.line(what)
	line = Fit(p.out, line)
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = max(p.width, utf8.RuneCountInString(line))
}

// line returns the text of the line: how much is done, and how long the rest will take if
// it goes on like this.
func (p *Progress) line(what string) string {
	line := fmt.Sprintf("%3d%% %s", p.done*100/p.all, bridge.VisibleLine(filepath.ToSlash(what)))
	spent, did := p.now().Sub(p.began), p.done-p.beganAfter
	if did <= 0 || spent < leastSpent {
		return line
	}
	left := time.Duration(float64(spent) / float64(did) * float64(p.all-p.done))
	return line + ", " + left.Round(time.Second).String() + " left"
}

// leastSpent is the time after which the time that is left can be told.
const leastSpent = time.Second

// End removes the line.
func (p *Progress) End() {
	if p.out != nil && p.width > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
