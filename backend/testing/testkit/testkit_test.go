package testkit

import (
	"os"
	"testing"
	"time"
)

func TestAShortRunIsShort(t *testing.T) {
	t.Setenv(Env, "")
	if n := Rounds(t, 3, 1000); n != 3 || IsLong() || Times(t) != 0 {
		t.Errorf("Rounds = %d, IsLong = %v", n, IsLong())
	}
	if n := Stride(t, 7); n != 7 {
		t.Errorf("Stride = %d, want 7", n)
	}
	ran := true
	t.Run("part", func(t *testing.T) {
		defer func() { ran = !t.Skipped() }()
		Long(t, "for the test")
	})
	if ran {
		t.Error("what only a long run does was done in a short one")
	}
}

func TestALongRunGoesAllRounds(t *testing.T) {
	for text, want := range map[string]int{"1": 1000, "3": 3000} {
		t.Setenv(Env, text)
		if n := Rounds(t, 3, 1000); n != want || !IsLong() {
			t.Errorf("%s: Rounds = %d, want %d; IsLong = %v", text, n, want, IsLong())
		}
		if n := Stride(t, 7); n != 1 {
			t.Errorf("%s: Stride = %d, want 1", text, n)
		}
		Long(t, "for the test")
	}
}

func TestTheKnobTakesPositiveNumbersAlone(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "1": true, "12": true, "0": false, "-1": false, "yes": false, "1.5": false} {
		if _, err := parse(text); (err == nil) != ok {
			t.Errorf("%s=%q: %v", Env, text, err)
		}
	}
}

// tests are what a package has, as one function.
type tests func() int

func (t tests) Run() int { return t() }

func TestTestsRunWhereTheHomeFolderIsEmpty(t *testing.T) {
	before, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", before) // which are put back
	t.Setenv("USERPROFILE", before)
	var during string
	code := Away(tests(func() int {
		during, err = os.UserHomeDir()
		if entries, failed := os.ReadDir(during); err != nil || failed != nil || len(entries) > 0 || during == before {
			t.Errorf("home is %q with %v: %v, %v", during, entries, err, failed)
		}
		return 3
	}))
	if code != 3 {
		t.Errorf("code %d", code)
	}
	if _, err := os.Lstat(during); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", during, err)
	}
}

// told notes what a test would say.
type told struct {
	testing.TB
	failed, logged int
}

func (o *told) Helper()               {}
func (o *told) Errorf(string, ...any) { o.failed++ }
func (o *told) Logf(string, ...any)   { o.logged++ }

func TestTimeCountsInALongRunAlone(t *testing.T) {
	for _, tt := range []struct {
		long           string
		took           time.Duration
		failed, logged int
	}{{"", time.Second, 0, 0}, {"", time.Second + 1, 0, 1}, {"1", time.Second, 0, 0}, {"1", time.Second + 1, 1, 0}} {
		t.Setenv(Env, tt.long)
		o := &told{TB: t}
		Within(o, time.Second, tt.took, "it came")
		if o.failed != tt.failed || o.logged != tt.logged {
			t.Errorf("long %q, %s: %d failures and %d lines", tt.long, tt.took, o.failed, o.logged)
		}
	}
}
