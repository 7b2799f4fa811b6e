package check

import "testing"

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
