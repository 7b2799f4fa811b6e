package archtest

import (
	"strings"
	"testing"
)

// removals is every place of the product that takes stored bytes, names or rows
// away, each with the reason why nothing is lost (STO-14). Whoever adds one
// writes down where the durable copy is.
var removals = map[string]string{
	"backend/platform/disk.dropTemp os.Remove":   "a file of the same call, which fails: nobody was told that it is kept",
	"backend/platform/disk.Files.fill Truncate":  "what stood behind the new content of a file that is written in place; a copy of all of it is on the disk",
	"backend/platform/disk.publishNew os.Remove": "the temporary name of a file that a hard link has just given its real name",
	"backend/platform/disk.Files.Move os.Remove": "the source, after its copy or second name is on the disk",

	"backend/platform/disk.Files.RemoveCopied os.Remove": "a file whose bytes the caller has on the disk elsewhere: a restore's recovery set",

	"backend/storage/maintain/lease.Lease.Release os.Remove":         "a lease holds no data, and its process has ended its work or is gone for certain",
	"backend/storage/maintain/lease.releaseLock os.Remove":           "the maintenance lock that this very process took",
	"backend/storage/maintain/restore.Restorer.dropStaged os.Remove": "a copy that was made beside its place and not put there; the set has the file",
	"backend/storage/maintain/restore.dropScratch os.RemoveAll":      "the scratch home of a drill, made by the same call from what stays",
	"backend/storage/maintain/snapshot.dropCopy os.RemoveAll":        "what was captured of a damaged index by the same call; the home has the file",

	"backend/network/files.store.reopen Truncate":            "bytes of a file on its way that were never noted as taken: its sender has them",
	"backend/network/files.store.startOver os.RemoveAll":     "what there is of a file on its way and cannot be gone on with: its sender has all of it",
	"backend/network/files.Transfers.dropNotes os.RemoveAll": "what was noted of a transfer on its way: it is in the inbox whole, or has failed and its sender has all of it",

	"backend/platform/sandbox.MakeCgroup os.Remove":   "the control group that the same call made; the kernel refuses one with processes, and a group holds no data",
	"backend/platform/sandbox.RemoveCgroup os.Remove": "a control group of a run that has ended; the kernel refuses one with processes, and a group holds no data",

	"backend/platform/sandbox/connects.Supervisor.shared unix.Unlinkat": "shared memory of a job, in the job's own folder, which the job itself removes",
	"backend/platform/sandbox/connects.Supervisor.shared unix.O_TRUNC":  "shared memory of a job, in the job's own folder, which the job itself empties",

	"backend/jobs/gitwork.program.scratchIndex os.RemoveAll":  "the copy of an index in a folder of its own, made by the same call; the checkout has its index",
	"backend/jobs/gitwork.program.clearCheckout os.RemoveAll": "a worktree that git could not make, in a folder that was not there before, or one in which no agent has begun: it holds what is committed and what a set-up command made",
	"backend/jobs/gitwork.Git.removeCheckout os.Remove":       "the empty folder of a worktree that git has just removed; the system refuses one that holds anything",

	"backend/agent/setup.Edit.write os.Remove":               "a settings file that Bridge itself made, checked to be as Bridge left it",
	"backend/agent/setup.dropEmptyDirs os.Remove":            "folders that Bridge made; the system refuses those that hold anything",
	"backend/agent/setup.Input.codexTrust os.RemoveAll":      "the throw-away folder of one question to codex, made by the same call",
	"backend/agent/prove/scripted.Home.Close os.RemoveAll":   "the throw-away home of an agent that is tried, made by the same process",
	"backend/agent/prove/scripted.Home.write os.WriteFile":   "a file of that throw-away home, which only its own process writes",
	"backend/agent/prove/scripted.Isolate os.RemoveAll":      "the throw-away /tmp of a run in namespaces, made by the same call",
	"backend/agent/prove/scripted.ownTemporary os.WriteFile": "an empty file on which one of the machine's /tmp is mounted, in a folder that the same run made",

	"backend/agent/driver.claudeState.publish os.Remove": "the folder of a session's subagents that Bridge made; the system refuses one that holds anything",
	"backend/doors/daemon.keys.entryFile os.Remove":      "the page with a ticket that is good for nothing any more",
	"backend/doors/cli.demoRun.end os.RemoveAll":         "the throw-away home of a demo, made by the same process",
	"backend/doors/cli/demo.Keep os.Remove":              "the mark of a demo's home that is kept: its words are fixed",

	"backend/doors/cli/service.systemd.dropUnit os.Remove": "the unit file that `service install` wrote; what it says can be written again",

	"backend/network/hub/server.verify os.RemoveAll": "the throw-away home that the same call has just made of a backup; the backup stays",

	"backend/platform/ipc.Journal.importFile os.Remove": "a receipt file, after the store has committed what it says",
	"backend/platform/ipc.Listen os.Remove":             "the socket of a broker that died; it holds no bytes, and the election lock is held",

	"backend/owner/prompts.Prompts.markLocked os.Remove": "an empty file that says whether a prompt is open, which the same process knows",

	"backend/platform/sqlitex.DropEmpty os.Remove":                     "a database of no bytes that could not be made",
	"backend/platform/sqlitex.dropUnmade os.Remove":                    "a database that never got its name and holds no row",
	"backend/storage/store/fulltext.Drop DROP TABLE":                   "the search index of a lost store, which is rebuilt; the recovery set has the file",
	"backend/storage/store/upgrade.safeCopy.discard os.Remove":         "a copy that was never published; the store still has all it holds",
	"backend/storage/store/upgrade.migration.restoreTable DELETE FROM": "a table whose contents are put back from the checked copy in the same transaction",
	"backend/storage/store/upgrade.FlushOutbox DELETE FROM":            "notices that the same transaction has put into the store, which commits first",
	"backend/storage/store/schema.Followed INSERT OR REPLACE":          "the one row that says how far a derived index reaches; the index is rebuilt from the messages",
	"backend/storage/store/fulltext.Index.putGroup DELETE FROM":        "the number of an indexed message that neither the store nor its archive has; the index is made from these",
	"backend/storage/store/transfer.archiver.pick DELETE FROM":         "the places of the last batch, in a temporary table",
	"backend/storage/store/transfer.archiver.removeRows DELETE FROM":   "old rows whose equal copies the archive has committed; the statement asks for them",
	"backend/storage/store.archive DELETE FROM":                        "an expired row, in the transaction that has archived it; the statement asks for the archived row",
}

func TestSTO_14_EveryRemovalIsReviewed(t *testing.T) {
	report(t, checkRemovals(removalsIn(module(t)), removals))
}

func TestSTO_14_TheGuardSeesRemovals(t *testing.T) {
	tests := []struct{ name, code, want string }{
		{name: "a file", code: `func f() { os.Remove("x") }`, want: "backend/p.f os.Remove"},
		{name: "a function value", code: `var clean = os.RemoveAll`, want: "backend/p.clean os.RemoveAll"},
		{name: "a method", code: `func (s *S) f() { s.file.Truncate(0) }`, want: "backend/p.S.f Truncate"},
		{name: "emptied on opening", code: `func f() { os.OpenFile("x", os.O_TRUNC, 0) }`, want: "backend/p.f os.O_TRUNC"},
		{name: "overwritten in place", code: `func f() { os.WriteFile("x", nil, 0) }`, want: "backend/p.f os.WriteFile"},
		{name: "rows", code: "const q = `\n delete\n from messages`", want: "backend/p.q delete\n from"},
		{name: "a table", code: `func f() { db.Exec("DROP TABLE x") }`, want: "backend/p.f DROP TABLE"},
		{name: "rows replaced", code: `const q = "INSERT OR REPLACE INTO x"`, want: "backend/p.q INSERT OR REPLACE"},
		{name: "a map entry", code: `func f() { delete(m, "x"); set.Remove(1); strings.Replace("", "", "", 1) }`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := removalsIn([]source{parse(t, "backend/p/p.go", "package p\n\n"+tt.code+"\n")})
			var got []string
			for _, removal := range found {
				got = append(got, removal.where+" "+removal.what)
			}
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("removals = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheListOfRemovalsIsExact(t *testing.T) {
	found := []removal{{where: "a.f", what: "os.Remove", line: "a.go:1"}}
	if problems := checkRemovals(found, nil); len(problems) != 1 || !strings.Contains(problems[0], "a.go:1") {
		t.Errorf("an unlisted removal gives %q", problems)
	}
	if problems := checkRemovals(found, map[string]string{"a.f os.Remove": "why"}); len(problems) != 0 {
		t.Errorf("a listed removal gives %q", problems)
	}
	if problems := checkRemovals(nil, map[string]string{"a.f os.Remove": "why"}); len(problems) != 1 {
		t.Errorf("an entry for nothing gives %q", problems)
	}
}
