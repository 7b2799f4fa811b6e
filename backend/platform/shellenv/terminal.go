package shellenv

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// askAgain is the minimum age of a login shell's answer before a new query.
const askAgain = time.Minute

// Terminal caches the environment of a new terminal of the owner, for jobs and to
// find the same programs as they do (RWM-07). It queries the login shell on first
// use. Now and Ask are required.
type Terminal struct {
	Ask func() ([]string, error) // returns the environment of a new terminal
	// Fallback is the environment while the shell does not answer.
	Fallback []string
	Now      func() time.Time
	Log      *slog.Logger

	asking  sync.Mutex // held during a query, so that concurrent callers share one
	mu      sync.Mutex // guards the fields below
	environ []string   // nil before the first query
	askedAt time.Time
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

// Refresh queries the shell again, because its files may have changed, and reports
// whether its PATH changed. Within a minute of the last query it does nothing.
func (t *Terminal) Refresh() (changed bool) {
	before := t.Environ()
	t.asking.Lock()
	defer t.asking.Unlock()
	known, askedAt := t.last()
	if t.Now().Sub(askedAt) >= askAgain {
		environ, err := t.Ask()
		if err != nil {
			t.Log.Warn("the login shell did not tell its environment again: the last one stays", "err", err)
			environ = known
		}
		t.keep(environ)
		known = environ
	}
	old, current := list(before), list(known)
	return old.get(pathName) != current.get(pathName)
}

func (t *Terminal) last() ([]string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.environ), t.askedAt
}

func (t *Terminal) keep(environ []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.environ, t.askedAt = append([]string{}, environ...), t.Now()
}

// Variable returns the value of a variable in an environment, or "" if it is unset.
func Variable(environ []string, name string) string {
	variables := list(environ)
	return variables.get(name)
}

// AskLogin queries this user's login shell for its environment, started in Clean of environ,
// this process's environment. program prints it, as in Question. It fails as [Ask] does.
func AskLogin(ctx context.Context, program, environ []string) ([]string, error) {
	start := list(Clean(environ))
	return Ask(ctx, Question{Shell: Login(start.get), Program: program, Environ: start, Home: start.get("HOME")})
}
