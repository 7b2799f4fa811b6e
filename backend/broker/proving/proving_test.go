package proving

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/config"
)

// memory is a File in memory.
type memory struct {
	proofs   []proof.Proof
	readErr  error
	writeErr error
	writes   int
}

func (m *memory) Proofs() ([]proof.Proof, error) { return m.proofs, m.readErr }

func (m *memory) SetProofs(proofs []proof.Proof) error {
	m.writes++
	if m.writeErr == nil {
		m.proofs = proofs
	}
	return m.writeErr
}

// bench is a service whose surroundings a test sets. Inside a synctest bubble only.
type bench struct {
	*Service
	t            *testing.T
	file         *memory
	mode         config.ProveMode
	settings     error
	busy         func() bool
	version      string // what codex says of itself
	linked       []bridge.AgentKind
	requestCount int
	tries        []time.Time
	run          func(ctx context.Context, n int) (proof.Proof, error) // n counts from 1
	changed      int
}

// of returns a proof of codex: pairs of a route and its state.
func of(version string, pairs ...any) proof.Proof {
	p := proof.Proof{Kind: bridge.Codex, Version: version, Routes: []proof.Result{}}
	for i := 0; i < len(pairs); i += 2 {
		p.Routes = append(p.Routes, proof.Result{Route: pairs[i].(proof.Route), State: pairs[i+1].(proof.State)})
	}
	return p
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, file: &memory{}, mode: config.ProveAuto, busy: func() bool { return false }, version: "1"}
	b.run = func(context.Context, int) (proof.Proof, error) { return of(b.version, proof.Wake, proof.Works), nil }
	b.open()
	return b
}

// open starts a service with what the file holds, as a new broker does.
func (b *bench) open() {
	b.Service = Open(Options{
		File: b.file, Kinds: []bridge.AgentKind{bridge.Codex},
		Settings: func() (config.Settings, error) {
			return config.Settings{Config: config.Config{Prove: b.mode}}, b.settings
		},
		Connected: func() ([]bridge.AgentKind, error) { return b.linked, nil },
		Version: func(context.Context, bridge.AgentKind) (string, error) {
			b.requestCount++
			return b.version, nil
		},
		Busy: func(context.Context) bool { return b.busy() },
		Run: func(ctx context.Context, kind bridge.AgentKind) (proof.Proof, error) {
			if kind != bridge.Codex {
				b.t.Errorf("%s is tried", kind)
			}
			b.tries = append(b.tries, time.Now())
			return b.run(ctx, len(b.tries))
		},
		Changed: func() { b.changed++ }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// after lets the service run for that long.
func (b *bench) after(d time.Duration) {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	b.Run(ctx)
}

func (b *bench) wantTries(n int, when string) {
	b.t.Helper()
	if len(b.tries) != n {
		b.t.Fatalf("%s: tried %d times, want %d", when, len(b.tries), n)
	}
}

func (b *bench) stored(version string) proof.Proof {
	b.t.Helper()
	p, found := b.Of(bridge.Codex, version)
	if !found {
		b.t.Errorf("there is no proof of %s", version)
	}
	return p
}

// in runs a test in a bubble with its own clock.
func in(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newBench(t)) })
}

func TestCAN_02_AVersionIsTriedOnceAfterItHasSettled(t *testing.T) {
	in(t, func(b *bench) {
		began := time.Now()
		b.Noticed(bridge.Codex, "1")
		b.after(2*time.Minute - time.Second)
		b.wantTries(0, "before it has settled")
		for range 5 {
			b.Noticed(bridge.Codex, "1") // of more sessions
			b.after(time.Hour)
		}
		b.wantTries(1, "after it has settled")
		if took := b.tries[0].Sub(began); took < 2*time.Minute {
			t.Errorf("it was tried after %s", took)
		}
		if p := b.stored("1"); p.At != b.tries[0].UnixMilli() || p.Problem != "" {
			t.Errorf("%+v", p)
		}
		b.open() // the broker starts again
		b.Noticed(bridge.Codex, "1")
		b.after(72 * time.Hour)
		b.wantTries(1, "after a restart")
		b.version = "2"
		b.Noticed(bridge.Codex, "2")
		b.after(time.Hour)
		b.wantTries(2, "with a new version")
	})
}

func TestCAN_02_TheConnectedAgentsAreAskedOnceADay(t *testing.T) {
	in(t, func(b *bench) {
		b.linked = []bridge.AgentKind{bridge.Claude, bridge.Codex} // a claude cannot be tried here
		b.after(askEvery - time.Hour)
		if b.requestCount != 1 {
			t.Errorf("asked %d times in a day", b.requestCount)
		}
		b.wantTries(1, "on the first day")
		b.version = "2"
		b.after(3 * time.Hour)
		if b.requestCount != 2 {
			t.Errorf("asked %d times in two days", b.requestCount)
		}
		b.wantTries(2, "on the second day")
	})
}

func TestCAN_02_WhatIsNotTried(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"it is off":                   func(b *bench) { b.mode = config.ProveOff },
		"the settings are damaged":    func(b *bench) { b.settings = errors.New("damaged") },
		"the PC is busy":              func(b *bench) { b.busy = func() bool { return true } },
		"it is proven":                func(b *bench) { b.file.proofs = []proof.Proof{of("1", proof.Wake, proof.Works)}; b.open() },
		"no kind can be tried":        func(b *bench) { b.opts.Kinds = nil },
		"its version is not known":    func(b *bench) { b.version = "" },
		"its owner proves it himself": func(b *bench) { b.Noticed(bridge.Codex, "1"); _ = b.Record(of("1", proof.Wake, proof.Works)) },
	} {
		in(t, func(b *bench) {
			change(b)
			b.Noticed(bridge.Codex, b.version)
			b.Noticed(bridge.Claude, "1")
			b.after(time.Hour)
			if len(b.tries) != 0 {
				t.Errorf("%s, and it is tried", name)
			}
		})
	}
}

func TestCAN_02_ATryWaitsUntilThePCIsNotBusy(t *testing.T) {
	in(t, func(b *bench) {
		free := time.Now().Add(5 * time.Hour)
		b.busy = func() bool { return time.Now().Before(free) }
		b.Noticed(bridge.Codex, "1")
		b.after(6 * time.Hour)
		b.wantTries(1, "when it is free")
		if b.tries[0].Before(free) {
			t.Errorf("tried at %s, it is free at %s", b.tries[0], free)
		}
	})
}

func TestCAN_02_WhatCouldNotBeTriedIsTriedAgainAfterADay(t *testing.T) {
	in(t, func(b *bench) {
		b.run = func(context.Context, int) (proof.Proof, error) {
			return proof.Proof{}, bridge.Errorf(bridge.Unavailable, "it did not start")
		}
		b.Noticed(bridge.Codex, "1")
		b.after(time.Hour)
		if p := b.stored("1"); p.Problem != "it did not start" || len(p.Broken()) != 0 {
			t.Errorf("%+v", p)
		}
		for range 20 {
			b.Noticed(bridge.Codex, "1")
			b.after(time.Hour)
		}
		b.wantTries(1, "on the same day")
		b.run = func(context.Context, int) (proof.Proof, error) { return of("", proof.Wake, proof.Works), nil }
		for range 6 {
			b.Noticed(bridge.Codex, "1")
			b.after(time.Hour)
		}
		b.wantTries(2, "a day later")
		if p := b.stored("1"); p.Problem != "" {
			t.Errorf("%+v", p)
		}
	})
}

func TestCAN_02_ATryHasALimit(t *testing.T) {
	in(t, func(b *bench) {
		b.run = func(ctx context.Context, _ int) (proof.Proof, error) {
			<-ctx.Done()
			return proof.Proof{}, ctx.Err()
		}
		b.Noticed(bridge.Codex, "1")
		b.after(time.Hour)
		b.wantTries(1, "within an hour")
		if p := b.stored("1"); p.Problem != "the try took longer than 10 min" {
			t.Errorf("%+v", p)
		}
	})
}

func TestCAN_02_ABrokerThatEndsKeepsNothingOfATry(t *testing.T) {
	in(t, func(b *bench) {
		b.run = func(ctx context.Context, _ int) (proof.Proof, error) {
			<-ctx.Done()
			return of("1", proof.Wake, proof.Broken), nil
		}
		b.Noticed(bridge.Codex, "1")
		b.after(settle + lookEvery + time.Minute)
		b.wantTries(1, "before the end")
		if b.file.writes != 0 {
			t.Errorf("kept: %+v", b.file.proofs)
		}
		b.run = func(context.Context, int) (proof.Proof, error) { return of("1", proof.Wake, proof.Works), nil }
		b.open()
		b.Noticed(bridge.Codex, "1")
		b.after(time.Hour)
		b.wantTries(2, "by the next broker")
	})
}

func TestCAN_02_ARouteIsBrokenOnlyIfTwoTriesSaySo(t *testing.T) {
	broken, works := of("1", proof.Wake, proof.Broken), of("1", proof.Wake, proof.Works)
	for _, c := range []struct {
		name          string
		first, second proof.Proof
		err           error // of the second try
		tries, broken int
		problem       string
	}{
		{"works at once", works, proof.Proof{}, nil, 1, 0, ""},
		{"broken twice", broken, broken, nil, 2, 1, ""},
		{"broken by slowness", broken, works, nil, 2, 0, ""},
		{"the second cannot run", broken, proof.Proof{}, errors.New("no room"), 2, 0, "the first try found a broken route, and the second one could not run: no room"},
	} {
		in(t, func(b *bench) {
			b.run = func(_ context.Context, n int) (proof.Proof, error) {
				if n == 1 {
					return c.first, nil
				}
				return c.second, c.err
			}
			b.Noticed(bridge.Codex, "1")
			b.after(time.Hour)
			b.wantTries(c.tries, c.name)
			if got := b.stored("1"); len(got.Broken()) != c.broken || got.Problem != c.problem {
				t.Errorf("%s: %+v", c.name, got)
			}
			if len(b.tries) == 2 && b.tries[1] != b.tries[0] {
				t.Errorf("%s: the second try came after %s", c.name, b.tries[1].Sub(b.tries[0]))
			}
			if b.file.writes != 1 {
				t.Errorf("%s: written %d times", c.name, b.file.writes)
			}
		})
	}
}

func TestCAN_02_TheSecondTryWaitsWhileThePCIsBusy(t *testing.T) {
	in(t, func(b *bench) {
		var free time.Time // a try makes the PC busy for a while
		b.busy = func() bool { return time.Now().Before(free) }
		b.run = func(context.Context, int) (proof.Proof, error) {
			free = time.Now().Add(30 * time.Minute)
			return of("1", proof.Wake, proof.Broken), nil
		}
		b.Noticed(bridge.Codex, "1")
		b.after(20 * time.Minute)
		b.wantTries(1, "while it is busy")
		if _, found := b.Of(bridge.Codex, "1"); found || b.file.writes != 0 {
			t.Error("a single try is recorded")
		}
		b.Noticed(bridge.Codex, "1")
		b.after(3 * time.Hour)
		b.wantTries(2, "when it is free")
		if got := b.tries[1].Sub(b.tries[0]); got < 30*time.Minute || got > 31*time.Minute {
			t.Errorf("the second try came after %s", got)
		}
		if got := b.stored("1"); len(got.Broken()) != 1 || got.Broken()[0].Since != "1" {
			t.Errorf("%+v", got)
		}
	})
}

func TestCAN_02_AnUpdateBetweenTwoTriesStartsAnew(t *testing.T) {
	in(t, func(b *bench) {
		b.run = func(_ context.Context, n int) (proof.Proof, error) {
			if n == 1 {
				return of("1", proof.Wake, proof.Broken), nil
			}
			return of("2", proof.Wake, proof.Works), nil
		}
		b.Noticed(bridge.Codex, "1")
		b.after(time.Hour)
		if _, found := b.Of(bridge.Codex, "1"); found {
			t.Error("the old version is recorded after one try")
		}
		b.wantTries(3, "with the update")
		if got := b.stored("2"); got.Problem != "" || len(got.Broken()) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestCAN_02_ABrokerThatEndsInTheSecondTryKeepsNothing(t *testing.T) {
	in(t, func(b *bench) {
		b.run = func(ctx context.Context, n int) (proof.Proof, error) {
			if n == 2 {
				<-ctx.Done()
			}
			return of("1", proof.Wake, proof.Broken), ctx.Err()
		}
		b.Noticed(bridge.Codex, "1")
		b.after(settle + lookEvery + time.Minute)
		b.wantTries(2, "before the end")
		if b.file.writes != 0 {
			t.Errorf("kept: %+v", b.file.proofs)
		}
	})
}

func TestCAN_02_AFileThatCannotBeWrittenRepeatsNoTry(t *testing.T) {
	in(t, func(b *bench) {
		b.file.writeErr = errors.New("the disk is full")
		for range 20 {
			b.Noticed(bridge.Codex, "1")
			b.after(time.Hour)
		}
		b.wantTries(1, "on a full disk")
		if _, found := b.Of(bridge.Codex, "1"); found {
			t.Error("what is not kept is shown")
		}
	})
}

func TestCAN_02_AFileThatCannotBeReadIsNotReplaced(t *testing.T) {
	in(t, func(b *bench) {
		b.file.readErr = bridge.Errorf(bridge.Storage, "damaged")
		b.open()
		if err := b.Record(of("1", proof.Wake, proof.Works)); bridge.CodeOf(err) != bridge.Storage || b.file.writes != 0 {
			t.Errorf("%v, %d writes", err, b.file.writes)
		}
		if len(b.Summaries()) != 0 {
			t.Errorf("%+v", b.Summaries())
		}
	})
}

func TestCAN_02_WhatIsRecordedByHand(t *testing.T) {
	in(t, func(b *bench) {
		recorded := 0
		b.OnRecorded(func() { recorded++ })
		for name, wrong := range map[string]proof.Proof{"no kind": {Version: "1"}, "no version": {Kind: bridge.Codex}, "no such kind": {Kind: "emacs", Version: "1"}} {
			if err := b.Record(wrong); bridge.CodeOf(err) != bridge.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		if recorded != 0 || b.file.writes != 0 {
			t.Error("a wrong proof is recorded")
		}
		if err := b.Record(of("1", proof.Wake, proof.Broken)); err != nil { // one try is enough
			t.Fatal(err)
		}
		if faults := b.Faults(bridge.Codex, "1"); !faults.Has(proof.Wake) || recorded != 1 || b.changed != 1 {
			t.Errorf("%v; recorded %d times, changed %d times", faults, recorded, b.changed)
		}
		if len(b.Faults(bridge.Codex, "2"))+len(b.Faults(bridge.Codex, ""))+len(b.Faults(bridge.Claude, "1")) != 0 {
			t.Error("another version has its faults")
		}
	})
}

func TestCAN_02_AKnownFaultNeedsNoSecondTry(t *testing.T) {
	in(t, func(b *bench) {
		known := of("1", proof.Wake, proof.Broken)
		known.Problem = "it was cut short"
		b.file.proofs = []proof.Proof{known}
		b.open()
		b.run = func(context.Context, int) (proof.Proof, error) { return of("1", proof.Wake, proof.Broken), nil }
		b.Noticed(bridge.Codex, "1")
		b.after(time.Hour)
		b.wantTries(1, "with a known fault")
	})
}

func TestCAN_02_TheSummariesAreOfThePresentVersions(t *testing.T) {
	in(t, func(b *bench) {
		b.file.proofs = []proof.Proof{of("1", proof.Wake, proof.Works), of("2", proof.Wake, proof.Broken)}
		b.open()
		versions := func() string {
			var all []string
			for _, s := range b.Summaries() {
				all = append(all, string(s.Kind)+" "+s.Version)
			}
			return strings.Join(all, ", ")
		}
		if got := versions(); got != "codex 2" {
			t.Errorf("at first: %q", got)
		}
		for _, step := range []struct{ version, want string }{{"1", "codex 1"}, {"3", ""}, {"2", "codex 2"}} {
			b.Noticed(bridge.Codex, step.version)
			if got := versions(); got != step.want {
				t.Errorf("codex is %s now: %q", step.version, got)
			}
		}
	})
}

func TestCAN_02_ANilServiceKnowsNothing(t *testing.T) {
	var s *Service
	s.Noticed(bridge.Codex, "1")
	s.OnRecorded(func() {})
	s.Run(t.Context())
	if _, found := s.Of(bridge.Codex, "1"); found || len(s.Faults(bridge.Codex, "1")) != 0 || s.Summaries() == nil || len(s.Summaries()) != 0 {
		t.Error("it knows something")
	}
	if _, err := s.record(t.Context(), of("1")); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("record: %v", err)
	}
}
