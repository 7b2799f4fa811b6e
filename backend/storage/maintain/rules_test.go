package maintain

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/rule"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/rules"
)

func TestNED_04_TheDoctorKnowsTheRulesAndARestoreBringsThemBack(t *testing.T) {
	c := newHome(t)
	path := filepath.Join(c.Home.Dir(), config.RulesStore)
	open := func() *rules.Rules {
		return rules.Open(rules.Options{Path: path, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}
	request := rule.Request{Agent: bridge.Codex, Kind: "command", Tool: "shell", Detail: "make check", Folder: "/src"}
	made, err := open().Make(request, rule.Wish{Match: rule.Exact, Folder: "this"})
	if err != nil {
		t.Fatal(err)
	}
	about := func(name string) (found []check.Code) {
		t.Helper()
		report, err := c.Doctor().Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range report.Findings {
			if finding.Path == name {
				found = append(found, finding.Code)
			}
		}
		return found
	}
	if found := about("rules.json"); len(found) != 0 {
		t.Errorf("healthy rules: %v", found)
	}
	set, err := c.Snapshots().Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]check.Code{
		"{":                           check.JSONDamaged,
		`{"version":1,"rules":{}}`:    check.JSONShape,
		`{"version":9,"rules":[]}`:    check.JSONNewer,
		`{"version":1,"rules":["x"]}`: check.JSONShape,
	} {
		write(t, c.Home.Dir(), config.RulesStore, content)
		if found := about("rules.json"); !slices.Contains(found, want) {
			t.Errorf("%s: %v, want %s", content, found, want)
		}
	}
	if _, err := c.Restores().Restore(t.Context(), set.Path); err != nil {
		t.Fatal(err)
	}
	if used, allowed := open().Allow(request, "job"); !allowed || used.ID != made.ID {
		t.Errorf("after a restore: %+v, %v", used, allowed)
	}
}

// A rule that was taken back after the snapshot does not hold again by its restore, nor
// by undoing one.
func TestNED_04_ARestoreGivesNoRuleAgainThatWasTakenBack(t *testing.T) {
	c := newHome(t)
	path := filepath.Join(c.Home.Dir(), config.RulesStore)
	open := func() *rules.Rules {
		return rules.Open(rules.Options{Path: path, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}
	request := func(detail string) rule.Request {
		return rule.Request{Agent: bridge.Codex, Kind: "command", Tool: "shell", Detail: detail, Folder: "/src"}
	}
	make := func(detail string) rule.Rule {
		t.Helper()
		made, err := open().Make(request(detail), rule.Wish{Match: rule.Exact, Folder: "this"})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	allowed := func(detail string) bool {
		_, is := open().Allow(request(detail), "job")
		return is
	}
	taken := make("make taken")
	make("make kept")
	set, err := c.Snapshots().Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := open().Revoke(taken.ID); err != nil {
		t.Fatal(err)
	}
	make("make later")
	done, err := c.Restores().Restore(t.Context(), set.Path)
	if err != nil {
		t.Fatal(err)
	}
	if allowed("make taken") || !allowed("make kept") || allowed("make later") || !strings.Contains(done.Rules, "1 standing rule of the snapshot that you took back since") {
		t.Errorf("after the restore: taken %t, kept %t, later %t; it says %q", allowed("make taken"), allowed("make kept"), allowed("make later"), done.Rules)
	}
	undone, err := c.Restores().Restore(t.Context(), done.Recovery)
	if err != nil {
		t.Fatal(err)
	}
	if allowed("make taken") || !allowed("make kept") || !allowed("make later") || !strings.Contains(undone.Rules, "allow again") {
		t.Errorf("after undoing it: taken %t, kept %t, later %t; it says %q", allowed("make taken"), allowed("make kept"), allowed("make later"), undone.Rules)
	}
	// Where nothing is known of them any more, they come back, and that is said.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if done, err = c.Restores().Restore(t.Context(), set.Path); err != nil || !allowed("make taken") || !strings.Contains(done.Rules, "2 standing rules") {
		t.Errorf("without rules: %t, it says %q (%v)", allowed("make taken"), done.Rules, err)
	}
}
