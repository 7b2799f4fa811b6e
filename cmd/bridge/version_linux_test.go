package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// released is the release that this program says it is, everywhere.
const released = "0.29.16"

func TestVER_07_TheVersionCommandSaysTheRelease(t *testing.T) {
	for _, tt := range []struct{ flag, starts string }{{"", "bridge " + released + " (commit "}, {"--json", `{"version":"` + released + `",`}} {
		output, err := exec.Command("bridge", append([]string{"version"}, strings.Fields(tt.flag)...)...).Output()
		said := string(output)
		if tt.flag != "" {
			said = strings.NewReplacer("\n", "", " ", "").Replace(said)
		}
		if err != nil || !strings.HasPrefix(said, tt.starts) {
			t.Errorf("bridge version %s says %q, %v; want it to start with %q", tt.flag, output, err, tt.starts)
		}
	}
}

// TestVER_07_TheHubSaysItsReleaseInTheSameWords: only the program's name differs.
func TestVER_07_TheHubSaysItsReleaseInTheSameWords(t *testing.T) {
	output := func(program, argument string) string {
		t.Helper()
		text, err := exec.Command(program, argument).Output()
		if err != nil {
			t.Fatalf("%s %s: %v", program, argument, err)
		}
		return string(text)
	}
	want := "bridge-hub" + strings.TrimPrefix(output("bridge", "--version"), "bridge")
	if !strings.Contains(want, " "+released+" (commit ") {
		t.Fatalf("bridge --version says no commit: %q", want)
	}
	for _, argument := range []string{"--version", "version"} {
		if got := output("bridge-hub", argument); got != want {
			t.Errorf("bridge-hub %s says %q, want %q", argument, got, want)
		}
	}
}

func TestVER_07_BothSidesOfTheHelloSayTheRelease(t *testing.T) {
	home := filepath.Join(shortDir(t), "h")
	s := serve(t, home)
	client, err := ipc.Dial(t.Context(), targetOf(t, home), ipc.Hello{Role: api.RoleOwner, PID: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if got := client.Welcome().Version; got != released {
		t.Errorf("the broker welcomes as %q, want %q", got, released)
	}
	client.Close()
	s.end(t)

	listener, err := ipc.Listen(targetOf(t, home).Socket)
	if err != nil {
		t.Fatal(err)
	}
	heard := &hellos{said: make(chan ipc.Hello, 1)}
	server := ipc.NewServer(targetOf(t, home).Token, heard, slog.New(slog.DiscardHandler))
	go server.Serve(listener) //nolint:errcheck // ends with the listener
	defer server.Close()
	defer listener.Close()
	if output, err := exec.Command("bridge", "status", "--json", "--home", home).CombinedOutput(); err != nil {
		t.Errorf("bridge status: %v: %s", err, output)
	}
	if got := (<-heard.said).Version; got != released {
		t.Errorf("a caller's hello says %q, want %q", got, released)
	}
}

func TestVER_07_AboutSaysTheRelease(t *testing.T) {
	home := filepath.Join(shortDir(t), "h")
	s := serve(t, home)
	defer s.end(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	launched := get(t, browser, s.link)
	launched.Body.Close()
	answer := get(t, browser, launched.Request.URL.Scheme+"://"+launched.Request.URL.Host+"/api/state")
	defer answer.Body.Close()
	var state struct {
		Instance struct{ Version string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&state); err != nil || state.Instance.Version != released {
		t.Errorf("the page's About is told %q (%v), want %q", state.Instance.Version, err, released)
	}
}

func get(t *testing.T, browser *http.Client, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func targetOf(t *testing.T, dir string) ipc.Target {
	t.Helper()
	home, err := config.ResolveHome(dir, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	token, err := home.ExistingToken()
	if err != nil {
		t.Fatal(err)
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}
}

// hellos stands where a broker is and hears who calls.
type hellos struct{ said chan ipc.Hello }

func (h *hellos) Connected(conn *ipc.Conn) (ipc.Welcome, error) {
	h.said <- conn.Hello()
	return ipc.Welcome{}, nil
}

func (h *hellos) Handle(context.Context, *ipc.Conn, string, json.RawMessage) (any, error) {
	return api.Status{}, nil
}

func (h *hellos) Disconnected(*ipc.Conn) {}
