package check

import (
	"strings"
	"testing"

	"bridge/backend/storage/maintain/inventory"
)

func TestSTO_06_OnlyTheNamesOfUnfinishedWritesAreLeftovers(t *testing.T) {
	for path, want := range map[string]bool{
		"jobs.json.tmp": true, "jobs.json.tmp-x": true, "jobs.json.tmp.12": true, "jobs.json.4711.tmp": true, ".jobs.json.tmp": true,
		"jobs.json.4711.1690000000000.tmp": true, "config.json.4711.0b6d3c1e-aaaa-4bbb-8ccc-0123456789ab.tmp": true,
		"bridge.db.tmp": true, "owner-questions.db.tmp-1": true, "launch-secret.tmp": true, "models-codex.json.tmp": true,
		"approvals/1.json.tmp": true, "network/transfers/1.json.7.tmp": true, "pending-job-writes/v1/a/receipt.json.tmp": true,
		"notes.tmp": false, "notes.txt.tmp": false, "jobs.tmp": false, "x.json.tmp": false, "jobs.json": false, "jobs.json.old": false,
		"jobs.json.draft.tmp": false, "worktrees/app/package.json.tmp": false, "inbox/1/data.json.tmp": false, "transfers/a.json.tmp": false,
		"plugin-versions/x/a.json.tmp": false, "jobs/readme.tmp": false, ".tmp": false, "install/mcp.json.tmp": false,
		"backups/snapshot-1/jobs.json.tmp": false, "archive/orphaned/1/jobs.json.tmp": false, "message-backups/messages-1/manifest.json.tmp": false,
	} {
		if isAbandonable(path) != want {
			t.Errorf("isAbandonable(%q) = %v", path, !want)
		}
	}
}

// Each finding says what it means and what to do, in sentences.
func TestDOC_10_EachCodeSaysWhatItMeansAndWhatToDo(t *testing.T) {
	for code, kind := range Kinds() {
		for _, text := range []string{kind.Means, strings.ReplaceAll(kind.Do, "{restore}", "x")} {
			if text == "" || !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] || strings.ContainsAny(text, "{}<>") {
				t.Errorf("%s: %q", code, text)
			}
		}
	}
}

func TestDOC_10_TheAdviceNamesTheNewestSnapshot(t *testing.T) {
	const name = "snapshot-1795911727097-b51cd8b9-b52a-4533-b59d-e9e575de6e2f"
	var r Report
	if _, do := r.Advice(DatabaseDamaged); strings.Contains(do, "restore latest") || !strings.Contains(do, "no snapshot") {
		t.Errorf("without a snapshot: %s", do)
	}
	r.Backups = []inventory.Set{{Path: "message-backups/messages-1795911727098-b51cd8b9-b52a-4533-b59d-e9e575de6e2f"}, {Path: "backups/" + name}}
	if _, do := r.Advice(DatabaseDamaged); do != "Restore a snapshot with `bridge doctor --restore "+name+"`." {
		t.Error(do)
	}
}
