package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// kept is a world over a real home with a store in it, cared for by a real
// maintenance that holds a lease as a broker's does.
func kept(t *testing.T, change ...func(*maintain.Maintenance)) (*world, config.Home) {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), home.DB(), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	care := maintain.Maintenance{Home: home, Program: "the broker", Now: time.Now, Retention: 7, ArchiveAge: 24 * time.Hour}
	for _, c := range change {
		c(&care)
	}
	lease, err := care.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release() })
	var w *world
	w = newWorld(t, func(o *Options) {
		o.Storage, o.Now = care.Doctor(), time.Now
		o.Maintenance = func() maintain.Maintenance { return w.care() }
	})
	w.care = func() maintain.Maintenance { return care }
	return w, home
}

// ended waits for the newest work to end.
func (w *world) ended() dto.Task {
	w.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		tasks := decode[dto.Tasks](w.t, w.get("/api/storage/work"))
		if tasks.Running == nil && len(tasks.Ended) > 0 {
			return tasks.Ended[0]
		}
	}
	w.t.Fatal("the work does not end")
	return dto.Task{}
}

func (w *world) workDone(body string) dto.Task {
	w.t.Helper()
	decode[dto.Tasks](w.t, w.post("/api/storage/work", body))
	return w.ended()
}

func TestSTO_04_DSK_06_TheOwnerBacksUpProvesAndChecksFromThePage(t *testing.T) {
	w, home := kept(t)
	if before := decode[check.Report](t, w.get("/api/storage")); len(before.Backups) != 0 {
		t.Fatalf("backups before: %+v", before.Backups)
	}
	for _, step := range []struct{ action, want string }{
		{"backup", "were copied and verified: snapshot-"}, {"drill", "found whole: snapshot-"}, {"archive", "Messages moved to the archive: 0."}, {"check", "Everything was read: healthy."},
	} {
		done := w.workDone(`{"action":"` + step.action + `","consent":true}`)
		if done.State != "done" || done.Action != step.action || !strings.Contains(done.Result, step.want) || done.Ended == nil {
			t.Errorf("%s: %+v", step.action, done)
		}
	}
	report := decode[check.Report](t, w.get("/api/storage"))
	if len(report.Backups) != 1 {
		t.Errorf("the report after the work is an old one: %+v", report.Backups)
	}
	if entries, err := os.ReadDir(home.Backups()); err != nil || len(entries) == 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if sizes := decode[dto.Sizes](t, w.get("/api/storage/sizes")); len(sizes.Points) != 1 || sizes.Points[0].Total == 0 {
		t.Errorf("sizes %+v", sizes)
	}
}

func TestSTO_09_DSK_06_NothingIsDoneWithoutConsentOrWhereItIsRefused(t *testing.T) {
	w, home := kept(t)
	for _, tt := range []struct {
		body, says string
		status     int
	}{
		{`{"action":"backup"}`, "consent must be true", http.StatusBadRequest},
		{`{"action":"archive","consent":false}`, "consent must be true", http.StatusBadRequest},
		{`{"action":"burn","consent":true}`, "action must be one of", http.StatusBadRequest},
		{`{"action":"backup","consent":"yes"}`, "", http.StatusBadRequest},
		{`{"action":"fix","consent":true}`, "--fix", http.StatusConflict},
		{`{"action":"restore","consent":true}`, "--restore latest", http.StatusConflict},
		{`{"action":"merge","consent":true}`, "--merge latest", http.StatusConflict},
	} {
		a := w.post("/api/storage/work", tt.body)
		refused(t, tt.body, a, tt.status)
		if !strings.Contains(a.body, tt.says) {
			t.Errorf("%s: %s does not say %q", tt.body, a.body, tt.says)
		}
	}
	if _, err := os.Stat(home.Backups()); !os.IsNotExist(err) {
		t.Errorf("something was done: %v", err)
	}
	if tasks := decode[dto.Tasks](t, w.get("/api/storage/work")); tasks.Running != nil || len(tasks.Ended) != 0 {
		t.Errorf("%+v", tasks)
	}
}

func TestDSK_06_WhatCanBeDoneIsOfferedInWords(t *testing.T) {
	w, _ := kept(t, func(c *maintain.Maintenance) { c.ArchiveAge = 0 })
	offers := map[string]dto.Offer{}
	tasks := decode[dto.Tasks](t, w.get("/api/storage/work"))
	for _, offer := range tasks.Offers {
		offers[offer.Action] = offer
		if offer.Explains == "" || !strings.Contains(offer.Command, "doctor") {
			t.Errorf("%+v", offer)
		}
	}
	for action, here := range map[string]bool{"backup": true, "drill": true, "check": true, "archive": false, "fix": false, "merge": false, "restore": false} {
		if (offers[action].Refused == "") != here {
			t.Errorf("%s: refused %q", action, offers[action].Refused)
		}
	}
	for code := range check.Kinds() {
		if tasks.Hints[string(code)] != code.Hint() || code.Hint() == "" {
			t.Errorf("%s has the hint %q", code, tasks.Hints[string(code)])
		}
	}
}

// TestTheShapesOfMaintenanceAreThoseOfTheGoldenFiles has the page's tests read
// what the server says; the hints, which grow, are not kept.
func TestTheShapesOfMaintenanceAreThoseOfTheGoldenFiles(t *testing.T) {
	w, home := kept(t)
	at := fixedTime.UnixMilli()
	ended := at + 1200
	tasks := decode[dto.Tasks](t, w.get("/api/storage/work"))
	tasks.Running = &dto.Task{Action: "backup", State: "running", Began: at, Step: "copying bridge.db", Done: 3, All: 9}
	tasks.Ended = []dto.Task{{Action: "drill", State: "failed", Began: at, Ended: &ended, Result: "there is no snapshot yet"}}
	tasks.Hints = map[string]string{"temp-abandoned": tasks.Hints["temp-abandoned"]}
	body, err := json.Marshal(tasks)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "works", strings.ReplaceAll(string(body), home.Dir(), "/home/anna/.bridge"))
	if err := os.MkdirAll(home.Logs(), 0o700); err != nil {
		t.Fatal(err)
	}
	line := `{"at":1772632800000,"total":245772,"parts":{"bridge.db":245760,"jobs.json":12}}` + "\n"
	if err := os.WriteFile(filepath.Join(home.Logs(), "sizes.jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	golden(t, "sizes", w.get("/api/storage/sizes").body)
}

func TestDSK_06_OneWorkAtATimeWithItsProgressInTheEvents(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	w, _ := kept(t)
	care := w.care()
	progressed := false
	w.care = func() maintain.Maintenance {
		slow := care
		slow.Now = func() time.Time { // the first thing that a work asks
			if !progressed {
				progressed = true
				close(held)
				<-release
			}
			return time.Now()
		}
		return slow
	}
	stream := w.openStream(t)
	decode[dto.Tasks](t, w.post("/api/storage/work", `{"action":"backup","consent":true}`))
	<-held
	refused(t, "a second work", w.post("/api/storage/work", `{"action":"drill","consent":true}`), http.StatusConflict)
	running := nextWork(t, stream)
	if running == nil || running.Action != "backup" || running.State != "running" {
		t.Errorf("the events tell %+v", running)
	}
	close(release)
	if done := w.ended(); done.State != "done" {
		t.Errorf("%+v", done)
	}
	for nextWork(t, stream) != nil { // progress, then the end
		continue
	}
}

// openStream opens the event stream, which ends after a while.
func (w *world) openStream(t *testing.T) *bufio.Scanner {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(stop)
	response, err := w.server.Client().Do(w.request(http.MethodGet, "/api/events", "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

// nextWork reads the stream's next word on maintenance.
func nextWork(t *testing.T, stream *bufio.Scanner) *dto.Task {
	t.Helper()
	for stream.Scan() {
		if stream.Text() != "event: storage" {
			continue
		}
		stream.Scan()
		var event struct{ Running *dto.Task }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(stream.Text(), "data: ")), &event); err != nil {
			t.Fatal(err)
		}
		return event.Running
	}
	t.Fatal("the stream ended")
	return nil
}

func TestDSK_06_AFailedWorkSaysWhy(t *testing.T) {
	w, _ := kept(t)
	done := w.workDone(`{"action":"drill","consent":true}`)
	if done.State != "failed" || !strings.Contains(done.Result, "there is no snapshot yet") {
		t.Errorf("%+v", done)
	}
}
