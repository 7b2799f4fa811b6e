package shellenv

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// askAgain is how long an answer of the login shell holds at least.
const askAgain = time.Minute

// Terminal holds the environment of a new terminal of the owner's: for jobs, and to find
// the programs that they find (RWM-07). The login shell is asked when somebody first needs
// its answer. Now and Ask are required.
type Terminal struct {
	Ask func() ([]string, error) // returns the environment of a new terminal
	// Fallback is the environment while the shell does not answer.
	Fallback []string
	Now      func() time.Time
	Log      *slog.Logger

	asking  sync.Mutex // held while the shell is asked, so that of many one asks
	mu      sync.Mutex // guards what follows
	environ []string   // nil while nobody has asked
	asked   time.Time
}

// Environ returns the environment as NAME=value. The first call waits for the shell.
func (t *Terminal) Environ() []string {
	if environ, _ := t.last(); environ != nil {
		return environ
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	if environ, _ := t.last(); environ != nil {
		return environ
	}
	environ, err := t.Ask()
	if err != nil {
		t.Log.Warn("the login shell did not tell its environment: jobs and look-ups of programs have the system's PATH and no variables of yours", "err", err)
		environ = t.Fallback
	} else {
		t.Log.Info("jobs work in the environment of the login shell", "variables", len(environ))
	}
	t.keep(environ)
	return slices.Clone(environ)
}

// Refresh asks the shell again, for its files may have changed, and reports whether its
// PATH is another one than before. Within a minute of the last time it asks nobody.
func (t *Terminal) Refresh() (changed bool) {
	before := t.Environ()
	t.asking.Lock()
	defer t.asking.Unlock()
	known, asked := t.last()
	if t.Now().Sub(asked) >= askAgain {
		environ, err := t.Ask()
		if err != nil {
			t.Log.Warn("the login shell did not tell its environment again: the last one stays", "err", err)
			environ = known
		}
		t.keep(environ)
		known = environ
	}
	old, fresh := list(before), list(known)
	return old.get(pathName) != fresh.get(pathName)
}

func (t *Terminal) last() ([]string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.environ), t.asked
}

func (t *Terminal) keep(environ []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.environ, t.asked = append([]string{}, environ...), t.Now()
}

// Variable returns the value of a variable in an environment, "" where it is not set.
func Variable(environ []string, name string) string {
	variables := list(environ)
	return variables.get(name)
}

// AskLogin has the login shell of this user tell its environment, from the clean start that
// Clean makes of environ, that of this process. program prints it, as for Question.
func AskLogin(ctx context.Context, program, environ []string) ([]string, error) {
	start := list(Clean(environ))
	return Ask(ctx, Question{Shell: Login(start.get), Program: program, Environ: start, Home: start.get("HOME")})
}
