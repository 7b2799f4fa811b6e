package terminal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// Progress shows the progress of long work on a terminal, on one temporary line that
// appears after a second. Elsewhere, and with TERM=dumb, it prints nothing. Several
// goroutines may use it.
type Progress struct {
	out *os.File // nil if no progress is shown
	now func() time.Time

	mu      sync.Mutex
	first   *time.Timer // draws the first line
	drawn   bool        // that time has come
	works   int         // that have ended
	drawnAt time.Time   // when the last line was drawn
	width   int         // of the last line, in characters

	step       string
	began      time.Time // when the present step began
	done, all  int64     // of the present step, at the last call
	beganAfter int64     // what was done at its begin
}

// progressPace is the minimum time between two lines.
const progressPace = 100 * time.Millisecond

// quickTime is how long a work may take before its progress is shown.
const quickTime = time.Second

// NewProgress returns the progress for the result of [Writer].
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	out, _ := File(w)
	if os.Getenv("TERM") == "dumb" { // it has no way back to the line's begin
		out = nil
	}
	return &Progress{out: out, now: now}
}

// Tell shows how much of a step is done. A step without a size is not shown.
func (p *Progress) Tell(what string, done, all int64) {
	if all <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if done < p.done || all != p.all || p.began.IsZero() {
		p.began, p.beganAfter, p.all = p.now(), done, all
	}
	p.step, p.done = what, done
	switch {
	case p.out == nil:
	case p.first == nil:
		work := p.works
		p.first = time.AfterFunc(quickTime, func() { p.drawFirst(work) })
	case p.drawn && p.now().Sub(p.drawnAt) >= progressPace:
		p.drawLocked()
	}
}

// drawFirst draws the first line, unless the work has ended.
func (p *Progress) drawFirst(work int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if work == p.works {
		p.drawn = true
		p.drawLocked()
	}
}

func (p *Progress) drawLocked() {
	p.drawnAt = p.now()
	line := Fit(p.out, p.line(p.step))
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = max(p.width, utf8.RuneCountInString(line))
}

// line returns the text of the line: how much is done, and how long the rest will take at
// the same speed. The time appears after a hundredth of the step and a second.
func (p *Progress) line(what string) string {
	line := fmt.Sprintf("%3d%% %s", p.done*100/p.all, bridge.VisibleLine(filepath.ToSlash(what)))
	spent, did := p.now().Sub(p.began), p.done-p.beganAfter
	if did*100 < p.all || spent < leastSpent { // too little to tell
		return line
	}
	remaining := time.Duration(float64(spent) / float64(did) * float64(p.all-p.done))
	return line + ", " + remaining.Round(time.Second).String() + " left"
}

// leastSpent is how long a step runs before its remaining time is shown.
const leastSpent = time.Second

// End removes the line. A later work may call [Progress.Tell] again.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first != nil {
		p.first.Stop()
	}
	p.first, p.drawn, p.works = nil, false, p.works+1
	if p.width > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
