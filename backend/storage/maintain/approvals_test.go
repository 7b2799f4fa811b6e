package maintain

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/storage/maintain/inventory"
)

const privateText = "0123456789abcdef-PRIVATE-OF-AN-APPROVAL"

// approvalsOf writes approvals of every kind and returns which go into a snapshot.
func approvalsOf(t *testing.T, c Maintenance) (kept []string) {
	t.Helper()
	for name, test := range map[string]struct {
		text string
		kept bool
	}{
		"answered":  {`{"id": "answered", "state": "answered", "decision": "allow", "what": "rm -r build", "answeredAt": 12345678901234567, "token": "` + privateText + `", "future": [1.50]}`, true},
		"delivered": {`{"id": "delivered", "state": "delivered", "decision": "deny", "asker": {"port": 5, "privateToken": "` + privateText + `"}}`, true},
		"applied":   {`{"id": "applied", "state": "applied", "decision": "allow"}`, true},
		"field":     {`{"id": "field", "owner": "x", "decision": "deny", "port": 4, "token": "` + privateText + `"}`, true},
		"asked":     {`{"id": "asked", "state": "asked", "token": "` + privateText + `"}`, false},
		"of-field":  {`{"id": "of-field", "owner": "x", "askedAt": 1, "deadline": 2, "pid": 3, "port": 4, "token": "` + privateText + `"}`, false},
		"expired":   {`{"id": "expired", "state": "expired"}`, false},
		"elsewhere": {`{"state": "answered", "token": "` + privateText + `", "url": "http://127.0.0.1/?key=` + privateText + `"}`, false},
		"no-json":   {`{"state": "answered", "token": "` + privateText + `"`, false},
		"a-list":    {`["answered", "` + privateText + `"]`, false},
	} {
		write(t, c.Home.Dir(), "approvals/"+name+".json", test.text)
		if test.kept {
			kept = append(kept, "approvals/"+name+".json")
		}
	}
	write(t, c.Home.Dir(), "approvals/deeper/x.json", `{"state": "answered"}`)
	return kept
}

// holding lists the files below a folder that hold a text.
func holding(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSTO_04_AnsweredApprovalsAreInASnapshotWithoutTheirTokens(t *testing.T) {
	c := newHome(t)
	kept := approvalsOf(t, c)
	made := mustBackup(t, c)
	manifest := manifestOf(t, made.Path)
	for _, file := range manifest.Files {
		if strings.HasPrefix(file.Path, "approvals/") && !has(kept, file.Path) {
			t.Errorf("the snapshot has %s", file.Path)
		}
	}
	for _, path := range kept {
		if !manifest.Has(path) {
			t.Errorf("the snapshot lacks %s", path)
		}
	}
	if found := holding(t, c.Home.Backups(), privateText); len(found) > 0 {
		t.Errorf("private tokens in %v", found)
	}
	want := map[string]any{"id": "answered", "state": "answered", "decision": "allow", "what": "rm -r build", "answeredAt": json.Number("12345678901234567"), "future": []any{json.Number("1.50")}}
	var got map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(read(t, made.Path, "approvals/answered.json"))))
	decoder.UseNumber()
	if err := decoder.Decode(&got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("the copy: %v\n%s", err, cmp.Diff(want, got))
	}
	if result, err := c.Restores().Test(t.Context(), made.Path); err != nil || !result.OK {
		t.Errorf("drill: %+v, %v", result, err)
	}
}

func TestSTO_04_STO_08_ApprovalsComeBackOnARestore(t *testing.T) {
	c := newHome(t)
	kept := approvalsOf(t, c)
	made := mustBackup(t, c)
	before := map[string]string{}
	for _, name := range []string{"asked", "of-field", "delivered", "no-json"} { // not the restore's
		before[name] = string(read(t, c.Home.Dir(), "approvals/"+name+".json"))
	}
	remove(t, c, "approvals/answered.json")
	write(t, c.Home.Dir(), "approvals/applied.json", `{"id": "applied", "state": "applied", "decision": "deny"}`)
	write(t, c.Home.Dir(), "approvals/later.json", `{"id": "later", "state": "answered", "decision": "deny"}`)
	done, err := c.Restores().Restore(t.Context(), made.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		inSet, here := string(read(t, made.Path, path)), string(read(t, c.Home.Dir(), path))
		if inSet != here && !strings.Contains(here, privateText) {
			t.Errorf("%s is %s", path, here)
		}
	}
	for name, want := range before {
		if got := string(read(t, c.Home.Dir(), "approvals/"+name+".json")); got != want {
			t.Errorf("%s was changed: %s", name, got)
		}
	}
	if !inventory.IsMissing(inventory.JoinHome(c.Home.Dir(), "approvals/later.json")) {
		t.Error("what came after the snapshot is still there")
	}
	for _, name := range []string{"later", "applied"} {
		if text := string(read(t, done.Recovery, inventory.DisplacedDir+"/approvals/"+name+".json")); !strings.Contains(text, "deny") {
			t.Errorf("the recovery set has %s as %s", name, text)
		}
	}
	if found := holding(t, c.Home.Backups(), privateText); len(found) > 0 {
		t.Errorf("private tokens in %v", found)
	}
}
