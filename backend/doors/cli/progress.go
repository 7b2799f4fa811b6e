package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/terminal"
)

// progress shows the progress of long work on a terminal, on one temporary line.
// Elsewhere it prints nothing.
type progress struct {
	out   *os.File // nil if no progress is shown
	now   func() time.Time
	shown time.Time
	width int
}

// progressPace is the minimum time between two lines.
const progressPace = 100 * time.Millisecond

func newProgress(a *App) *progress {
	out, _ := terminal.File(a.Stderr)
	return &progress{out: out, now: a.Now}
}

func (p *progress) tell(what string, done, all int64) {
	if p.out == nil || all <= 0 || p.now().Sub(p.shown) < progressPace {
		return
	}
	p.shown = p.now()
	line := fmt.Sprintf("%3d%% %s", done*100/all, bridge.VisibleLine(filepath.ToSlash(what)))
	line = terminal.Fit(p.out, line)
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = max(p.width, utf8.RuneCountInString(line))
}

func (p *progress) end() {
	if p.out != nil && p.width > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
