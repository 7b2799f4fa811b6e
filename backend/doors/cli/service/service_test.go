package service

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
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
			request := Request{Getenv: func(string) string { return "" }, System: system}
			if home != "" {
				request.Home = filepath.Join(userHome, home)
			}
			s, err := Describe(request)
			if err != nil {
				t.Fatal(err)
			}
			if other, taken := names[s.Name]; taken {
				t.Errorf("%s is the service of %s and of the home %q, system %v", s.Name, other, home, system)
			}
			names[s.Name] = home
			if system && !strings.HasPrefix(s.Name, "bridge-"+s.Account[strings.LastIndex(s.Account, `\`)+1:]) {
				t.Errorf("the machine's service %s does not name the account %s", s.Name, s.Account)
			}
		}
	}
}

func TestDSK_03_WhoseServiceItIs(t *testing.T) {
	nothing := func(string) string { return "" }
	if _, err := Describe(Request{Getenv: nothing, Account: "root"}); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("--user without --system: %v", err)
	}
	if _, err := Describe(Request{Getenv: nothing, Account: "no such account", System: true}); bridge.CodeOf(err) != bridge.NotFound {
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

func TestDSK_03_WhoServesTheHomeIsSaid(t *testing.T) {
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	by := func(host string) *api.Status { return &api.Status{Host: host, PID: 7, Version: "1.2"} }
	mine := Service{Name: "bridge", Account: current.Username}
	for _, tt := range []struct {
		name   string
		of     Service
		state  string
		broker *api.Status
		says   string
		waits  bool
	}{
		{"nobody", mine, Running, nil, "none serves", false},
		{"the service", mine, Running, by(Host), "this service, version 1.2", false},
		{"a person's broker", mine, Running, by("serve"), "process 7 (serve) serves this home; the service waits", true},
		{"a person's broker beside a service that is stopped", mine, Stopped, by("serve"), "process 7 (serve) serves this home\n", false},
		{"a broker that leaves for it", mine, Running, by(broker.HostBackground), "process 7 (background) serves this home\n", false},
		{"somebody else's", Service{Name: "bridge", Account: "nobody like this"}, Running, nil, "only nobody like this may ask it", false},
	} {
		t.Run("DSK-03 "+tt.name, func(t *testing.T) {
			report := Report{Status: Status{Installed: true, State: tt.state}, Broker: tt.broker}
			if text := tt.of.Text(report); !strings.Contains(text, "Broker   "+tt.says) {
				t.Errorf("the text does not say %q:\n%s", tt.says, text)
			}
			serves := tt.broker != nil && tt.broker.Host == Host
			if report.waits() != tt.waits || report.serves() != serves {
				t.Errorf("it waits: %v, it serves: %v", report.waits(), report.serves())
			}
		})
	}
}

func TestDSK_03_AServiceIsNamedByTheCommandThatMeansIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there a service is always the machine's")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	usual, err := config.ResolveHome("", func(name string) string { return map[string]string{"HOME": dir}[name] })
	if err != nil {
		t.Fatal(err)
	}
	other, err := config.ResolveHome(filepath.Join(dir, "other"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of            Service
		command, args string
	}{
		{Service{Home: usual}, "bridge service start", "service run"},
		{Service{Home: other}, `bridge service start --home "` + other.Dir() + `"`, "service run --home " + other.Dir()},
		{Service{Home: usual, System: true, Account: "al"}, "sudo bridge service start --system --user al", "service run"},
	} {
		if got := tt.of.Command("start"); got != tt.command {
			t.Errorf("command %q, want %q", got, tt.command)
		}
		if got := strings.Join(tt.of.Args(), " "); got != tt.args {
			t.Errorf("args %q, want %q", got, tt.args)
		}
	}
}

// TestDSK_03_AnAccountsServiceHasTheAccountsHome: whoever types the command.
func TestDSK_03_AnAccountsServiceHasTheAccountsHome(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("NOT TESTED: no account `nobody` on this machine")
	}
	t.Setenv("HOME", t.TempDir())
	asSudo := func(name string) string { return map[string]string{"SUDO_USER": "nobody", "HOME": "/root"}[name] }
	for _, tt := range []struct {
		name    string
		request Request
		want    bool
	}{
		{"named", Request{Getenv: os.Getenv, System: true, Account: "nobody"}, true},
		{"who called sudo", Request{Getenv: asSudo, System: true}, os.Geteuid() == 0},
		{"one's own", Request{Getenv: asSudo}, false},
	} {
		t.Run("DSK-03 "+tt.name, func(t *testing.T) {
			s, err := Describe(tt.request)
			if err != nil {
				t.Fatal(err)
			}
			home := os.Getenv("HOME")
			if tt.want {
				home = nobody.HomeDir
			}
			if (s.Account == "nobody") != tt.want || s.Home.Dir() != filepath.Join(home, ".bridge") || !s.Home.IsDefault() {
				t.Errorf("the service of %s has the home %s, usual: %v", s.Account, s.Home.Dir(), s.Home.IsDefault())
			}
			want := "bridge"
			if tt.request.System {
				want += "-" + s.Account
			}
			if s.Name != want {
				t.Errorf("it is called %s, want %s", s.Name, want)
			}
		})
	}
}

// standing is a manager that only tells how its service stands.
type standing struct {
	Manager
	status Status
}

func (s standing) Status(context.Context) (Status, error) { return s.status, nil }

// TestDSK_03_AnotherAccountsBrokerIsNotAsked: it answers its own account alone.
func TestDSK_03_AnotherAccountsBrokerIsNotAsked(t *testing.T) {
	asked := false
	c := Control{
		Service: Service{Name: "bridge-bob", Account: "nobody like this"},
		Manager: standing{status: Status{Installed: true, State: Running}},
		Broker: func(context.Context) (*api.Status, error) {
			asked = true
			return &api.Status{Host: Host}, nil
		},
	}
	report, err := c.Report(t.Context())
	if err != nil || asked || report.Broker != nil || report.State != Running {
		t.Errorf("asked %v, report %+v, %v", asked, report, err)
	}
}
