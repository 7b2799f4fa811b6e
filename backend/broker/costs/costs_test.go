package costs

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/core/session"
	"bridge/backend/platform/config"
)

var noon = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)

func newHome(t *testing.T) config.Home {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	return home
}

func openAt(home config.Home, now *time.Time) *Counter {
	return Open(config.CostsFile{Home: home}, func() time.Time { return *now }, slog.New(slog.DiscardHandler))
}

func TestCTX_03_CountsAreKeptByDayAndSession(t *testing.T) {
	home, now := newHome(t), noon
	c := openAt(home, &now)
	c.Add("web", session.Cost{Mail: 100})
	c.Add("web", session.Cost{Notices: 8})
	c.Add("claude:h1", session.Cost{Notes: 40})
	now = noon.AddDate(0, 0, 1)
	c.Add("web", session.Cost{Mail: 5})
	c.Subtract("web", session.Cost{Mail: 15}) // 5 of today, 10 of the day before
	c.Move("claude:h1", "web")
	c.Move("web", "web")
	want := []config.DayCost{{Day: "2026-02-03", Session: "web", Cost: session.Cost{Notes: 40, Mail: 90, Notices: 8}}}
	if diff := cmp.Diff(want, c.Days()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	c.Write()
	if diff := cmp.Diff(want, openAt(home, &now).Days()); diff != "" {
		t.Errorf("after a new broker (-want +got):\n%s", diff)
	}
	now = noon.AddDate(0, 0, KeptDays)
	if got := openAt(home, &now).Days(); len(got) != 0 {
		t.Errorf("after %d days: %+v", KeptDays, got)
	}
}

func TestCTX_03_AnUnreadableFileStaysAsItIs(t *testing.T) {
	for name, text := range map[string]string{"damaged": "{", "newer": `{"version":2,"days":[],"reported":[]}`} {
		t.Run(name, func(t *testing.T) {
			home, now := newHome(t), noon
			path := filepath.Join(home.Dir(), config.CostsStore)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c := openAt(home, &now)
			c.Add("web", session.Cost{Mail: 1})
			c.Write()
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("the file is %q, %v", got, err)
			}
			if len(c.Days()) != 1 {
				t.Error("it does not count in memory")
			}
		})
	}
}

// failing is a file that cannot be written at first.
type failing struct {
	fails  bool
	stored config.Costs
}

func (f *failing) Costs() (config.Costs, error) { return f.stored, nil }
func (f *failing) SetCosts(costs config.Costs) error {
	if f.fails {
		return errors.New("the disk is full")
	}
	f.stored = costs
	return nil
}

func TestCTX_03_AWriteThatFailsIsTriedAgain(t *testing.T) {
	file := &failing{fails: true}
	c := Open(file, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	c.Add("web", session.Cost{Mail: 1})
	c.Write()
	file.fails = false
	c.Write()
	if len(file.stored.Days) != 1 {
		t.Errorf("stored %+v", file.stored)
	}
}

// However often reports are repeated, and whenever the broker is replaced, the counts are
// the totals that the processes reported last.
func TestCTX_03_ARepeatedReportCountsOnce(t *testing.T) {
	home, now := newHome(t), noon
	rapid.Check(t, func(t *rapid.T) {
		if err := (config.CostsFile{Home: home}).SetCosts(config.Costs{}); err != nil {
			t.Fatal(err)
		}
		c := openAt(home, &now)
		totals := map[string]session.Cost{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			reporter := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "reporter")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // it gave the host more
				totals[reporter] = totals[reporter].Plus(session.Cost{Tools: rapid.Int64Range(0, 9).Draw(t, "tools"), Mail: rapid.Int64Range(0, 9).Draw(t, "mail")})
				c.Report("web", reporter, totals[reporter])
			case 1: // the broker did not answer in time, or is another one
				c.Report("web", reporter, totals[reporter])
			case 2: // an orderly end
				c.Write()
				c = openAt(home, &now)
			default: // a crash: the processes report to the next broker
				c = openAt(home, &now)
				for text, total := range maps.All(totals) {
					c.Report("web", text, total)
				}
			}
		}
		var want session.Cost
		for _, total := range totals {
			want = want.Plus(total)
		}
		var got session.Cost
		for _, day := range c.Days() {
			got = got.Plus(day.Cost)
		}
		if got != want {
			t.Errorf("counted %+v, reported %+v", got, want)
		}
	})
}
