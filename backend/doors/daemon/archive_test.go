package daemon

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// A damaged archive.db is a finding, and the page goes on.
func TestSTO_15_TheStateIsToldWithADamagedArchive(t *testing.T) {
	home := newHome(t)
	end(t, start(t, options(home, "serve")))
	if err := os.WriteFile(home.Archive(), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, options(home, "serve"))
	defer end(t, d)
	launch, err := d.LaunchURL()
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	get := func(path string, answer any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("GET %s = %s", path, response.Status)
		}
		if answer == nil {
			return
		}
		if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
	get(launch, nil)
	var state struct {
		Storage struct{ Errors *int }
	}
	deadline := time.After(testkit.Patience)
	for get(d.URL()+"/api/state", &state); state.Storage.Errors == nil || *state.Storage.Errors == 0; get(d.URL()+"/api/state", &state) {
		select {
		case <-deadline:
			t.Fatal("the state never tells of the damage")
		case <-time.After(20 * time.Millisecond):
		}
	}
	var report struct{ Findings []struct{ Code, Path string } }
	get(d.URL()+"/api/storage", &report)
	if len(report.Findings) != 1 || report.Findings[0].Code != "database-unreadable" || report.Findings[0].Path != "archive.db" {
		t.Errorf("findings: %+v", report.Findings)
	}
	get(d.URL()+"/api/archive/messages", &map[string]any{})
}
