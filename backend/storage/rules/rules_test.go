package rules_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/storage/rules"
	"bridge/backend/testing/testkit"
)

func open(t *testing.T, path string) *rules.Rules {
	t.Helper()
	return rules.Open(rules.Options{Path: path, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
}

func command(folder, text string) rule.Request {
	return rule.Request{Agent: bridge.Codex, Kind: "command", Tool: "shell", Detail: text, Folder: folder}
}

func live(t *testing.T, r *rules.Rules) []rule.Rule {
	t.Helper()
	list, err := r.Live()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNED_04_RulesAndTheirUsesOutliveTheProcess(t *testing.T) {
	path, folder := filepath.Join(t.TempDir(), "rules.json"), t.TempDir()
	r := open(t, path)
	if _, allowed := r.Allow(command(folder, "go test ./a"), "job-1"); allowed {
		t.Fatal("nothing was made, and it is allowed")
	}
	made, err := r.Make(command(folder, "go test ./a"), rule.Wish{Match: rule.Prefix, Words: []string{"go", "test"}, Folder: "this"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		r = open(t, path)
		if used, allowed := r.Allow(command(folder, fmt.Sprintf("go test ./%d", n)), fmt.Sprintf("job-%d", n)); !allowed || used.ID != made.ID {
			t.Fatalf("use %d: %+v, %v", n, used, allowed)
		}
	}
	r = open(t, path)
	if list := live(t, r); len(list) != 1 || list[0].Uses != 3 || list[0].LastFor != "job-2" {
		t.Errorf("kept: %+v", list)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != testkit.Mode(0o600) {
		t.Errorf("the file is %v, %v: it is the owner's alone", info, err)
	}
	undone := 0
	r.OnTakenBack(func(id string) rules.Undone {
		if id != made.ID || r.Holds(id) {
			t.Errorf("undone: %s, while it holds: %v", id, r.Holds(id))
		}
		undone++
		return rules.Undone{}
	})
	if _, _, err := r.Revoke(made.ID); err != nil || undone != 1 {
		t.Fatal(err, undone)
	}
	for name, r := range map[string]*rules.Rules{"at once": r, "after a restart": open(t, path)} {
		if _, allowed := r.Allow(command(folder, "go test ./a"), "job-9"); allowed || r.Holds(made.ID) || len(live(t, r)) != 0 {
			t.Errorf("%s it still holds", name)
		}
	}
	if _, _, err := r.Revoke(made.ID); err != nil {
		t.Errorf("again: %v", err)
	}
	_, _, err = r.Revoke("rule-00000000")
	if bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("one that never was: %v", err)
	}
}

func TestNED_04_AnOpenWordLeadsNowhereElse(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(folder, "in"), 0o700))
	must(os.WriteFile(filepath.Join(folder, "in", "a"), nil, 0o600))
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Skip("no links here: ", err)
	}
	must(os.Symlink(filepath.Join(folder, "in"), filepath.Join(folder, "inner")))
	must(os.Symlink(filepath.Join(outside, "nothing"), filepath.Join(folder, "dangling")))
	r := open(t, filepath.Join(t.TempDir(), "rules.json"))
	_, err := r.Make(command(folder, "touch in/a in/b"), rule.Wish{Match: rule.Prefix, Words: []string{"touch", "in/a"}, Folder: "this"})
	must(err)
	for text, allowed := range map[string]bool{
		"touch in/a": true, "touch in/a in/b": true, "touch in/a new/deep/file": true, "touch in/a inner/b": true, "touch in/a " + folder + "/in/b": true,
		"touch in/a link": false, "touch in/a link/b": false, "touch in/a dangling": false, "touch in/a in/b:link/b": false, "touch in/a " + folder + "/link/b": false,
	} {
		if _, got := r.Allow(command(folder, text), "job"); got != allowed {
			t.Errorf("%q: allowed = %v, want %v", text, got, allowed)
		}
	}
	from := command(folder, "touch in/a link")
	from.Cwd = filepath.Join(folder, "in") // there, it is no link
	if _, allowed := r.Allow(from, "job"); !allowed {
		t.Error("a word is looked at from where the command runs")
	}
	gone := command(filepath.Join(folder, "gone"), "touch in/a b")
	if _, err := r.Make(gone, rule.Wish{Match: rule.Prefix, Words: []string{"touch", "in/a"}, Folder: "this"}); err != nil {
		t.Fatal(err)
	}
	if _, allowed := r.Allow(gone, "job"); allowed {
		t.Error("a folder that is not there cannot be looked at, and it is allowed")
	}
}

func TestNED_04_NoMoreThan200Hold(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "rules.json"))
	exact := rule.Wish{Match: rule.Exact, Folder: "all"}
	first, err := r.Make(command("/src", "make 0"), exact)
	for n := 1; n < 200 && err == nil; n++ {
		_, err = r.Make(command("/src", fmt.Sprintf("make %d", n)), exact)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Make(command("/src", "make 200"), exact); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("the 201st: %v", err)
	}
	if _, _, err := r.Revoke(first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Make(command("/src", "make 200"), exact); err != nil {
		t.Errorf("after one was taken back: %v", err)
	}
	// What holds no more is kept for a while, and then goes; what holds stays.
	for n := range 130 {
		made, err := r.Make(command("/src", fmt.Sprintf("make x%d", n)), exact)
		if err != nil {
			_, _, err = r.Revoke(live(t, r)[0].ID)
		} else {
			_, _, err = r.Revoke(made.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, has := r.Find(first.ID); has {
		t.Error("the oldest of more than 100 that ended is still there")
	}
	if list := live(t, r); !slices.ContainsFunc(list, func(item rule.Rule) bool { return item.Text == "make 200" }) {
		t.Error("one that holds is gone")
	}
}

func TestNED_04_WhatCannotBeWrittenChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "rules.json")
	r := open(t, path)
	exact := rule.Wish{Match: rule.Exact, Folder: "all"}
	made, err := r.Make(command("/src", "make a"), exact)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, allowed := r.Allow(command("/src", "make a"), "job"); allowed {
		t.Error("a use that cannot be counted is allowed")
	}
	if _, err := r.Make(command("/src", "make b"), exact); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("a rule that cannot be written: %v", err)
	}
	if _, _, err := r.Revoke(made.ID); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("an end that cannot be written: %v", err)
	}
	if list := live(t, r); len(list) != 1 || list[0].Uses != 0 || list[0].ID != made.ID {
		t.Errorf("they are %+v", list)
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, allowed := r.Allow(command("/src", "make a"), "job"); !allowed {
		t.Error("once it can be counted again, it is not allowed")
	}
	if data, err := fs.ReadFile(os.DirFS(dir), "rules.json"); err != nil || !strings.Contains(string(data), `"uses": 1`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestNED_04_WhatWasHandedOutIsNamed(t *testing.T) {
	by := func(id, by string, state job.ApprovalState) job.Approval {
		return job.Approval{ID: id, AnsweredBy: by, State: state}
	}
	got := rules.Handed([]job.Approval{
		by("a", "rule:rule-1", job.ApprovalAnswered), by("b", "rule:rule-1", job.ApprovalDelivered), by("c", "rule:rule-1", job.ApprovalApplied),
		by("d", "rule:rule-12", job.ApprovalAnswered), by("e", "you", job.ApprovalAnswered), by("f", "rule:rule-1", job.ApprovalWithdrawn),
	}, "rule-1")
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("handed out: %v", got)
	}
}

// A file that an editor saved with a byte order mark holds as before, also for what a
// restore compares; in one with a member twice no rule holds.
func TestRWM_11_RWM_12_RulesThatTheirOwnerEdited(t *testing.T) {
	path, folder := filepath.Join(t.TempDir(), "rules.json"), t.TempDir()
	r := open(t, path)
	made, err := r.Make(command(folder, "go test ./a"), rule.Wish{Match: rule.Exact, Folder: "this"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	marked := append([]byte("\ufeff"), plain...)
	if err := os.WriteFile(path, marked, 0o600); err != nil {
		t.Fatal(err)
	}
	if list := live(t, open(t, path)); len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("behind a mark: %+v", list)
	}
	taken := strings.Replace(string(plain), `"id"`, `"takenBack": 1, "id"`, 1)
	if _, kept, _, err := rules.TakenBackSince(marked, append([]byte("\ufeff"), taken...), 2); err != nil || kept != 1 {
		t.Errorf("restored from behind a mark: %d taken back, %v", kept, err)
	}
	twice := strings.Replace(string(plain), "{", "{\n\"rules\": [],\n", 1)
	if err := os.WriteFile(path, []byte(twice), 0o600); err != nil {
		t.Fatal(err)
	}
	r = open(t, path)
	if _, err := r.Live(); err == nil {
		t.Error("rules twice are read")
	}
	if _, allowed := r.Allow(command(folder, "go test ./a"), "job"); allowed {
		t.Error("rules twice allow")
	}
}
