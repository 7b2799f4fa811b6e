package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/bridge"
)

func TestDSK_03_TheLogsEndIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.log")
	if _, err := lastLines(path, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a log: %v", err)
	}
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for count, want := range map[int]string{1: "c", 2: "b c", 3: "a b c", 50: "a b c"} {
		if got, err := lastLines(path, count); err != nil || strings.Join(got, " ") != want {
			t.Errorf("the last %d lines are %q, %v", count, got, err)
		}
	}
}

// TestDSK_03_ServicesOfHomesAndAccountsHaveNamesOfTheirOwn: one never takes the
// other's place.
func TestDSK_03_ServicesOfHomesAndAccountsHaveNamesOfTheirOwn(t *testing.T) {
	userHome := t.TempDir()
	t.Setenv("HOME", userHome)
	names := map[string]string{}
	for _, system := range []bool{false, true} {
		for _, home := range []string{"", "one", "two"} {
			a := &App{Getenv: func(string) string { return "" }}
			if home != "" {
				a.homeFlag = filepath.Join(userHome, home)
			}
			s, err := a.service(serviceFlags{system: system})
			if err != nil {
				t.Fatal(err)
			}
			if other, taken := names[s.name]; taken {
				t.Errorf("%s is the service of %s and of the home %q, system %v", s.name, other, home, system)
			}
			names[s.name] = home
			if system && !strings.HasPrefix(s.name, "bridge-"+s.account[strings.LastIndex(s.account, `\`)+1:]) {
				t.Errorf("the machine's service %s does not name the account %s", s.name, s.account)
			}
		}
	}
}

func TestDSK_03_WhoseServiceItIs(t *testing.T) {
	a := &App{Getenv: func(string) string { return "" }}
	var usage *usageError
	if _, err := a.service(serviceFlags{account: "root"}); !errors.As(err, &usage) {
		t.Errorf("--user without --system: %v", err)
	}
	if _, err := a.service(serviceFlags{account: "no such account", system: true}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("an account that is not there: %v", err)
	}
	plain := map[string]bool{}
	for _, name := range []string{"alice", "a.b-c_1", "-x", "../x", "a b", "a/b", "a%n", ""} {
		plain[name] = plainAccount.MatchString(name)
	}
	want := map[string]bool{"alice": true, "a.b-c_1": true, "-x": false, "../x": false, "a b": false, "a/b": false, "a%n": false, "": false}
	if diff := cmp.Diff(want, plain); diff != "" {
		t.Errorf("names of accounts that may be part of a service's:\n%s", diff)
	}
}
