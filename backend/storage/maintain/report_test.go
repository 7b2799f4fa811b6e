package maintain

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/testing/testkit"
)

func TestSTO_01_ASoundHomeHasNoFinding(t *testing.T) {
	c := newHome(t)
	mustBackup(t, c)
	before := listing(t, c.Home.Dir())
	r := report(t, c)
	if !r.OK || len(r.Findings) > 0 {
		t.Errorf("findings = %v", r.Findings)
	}
	if diff := cmp.Diff([]check.Schema{{Path: "bridge.db", Actual: 9, Expected: 9}}, r.Schema); diff != "" {
		t.Error(diff)
	}
	var sum int64
	sizes := map[string]int64{}
	for _, size := range r.Sizes {
		sum += size.Bytes
		sizes[size.Path] = size.Bytes
	}
	if sum != r.TotalBytes || sizes["bridge.db"] == 0 || sizes["runs"] != int64(len(logText)+len(`{"run": "one"}`)) {
		t.Errorf("sizes = %v, total %d", r.Sizes, r.TotalBytes)
	}
	if len(r.Backups) != 1 || !strings.HasPrefix(r.Backups[0].Path, "backups/snapshot-") || r.Backups[0].CreatedAt == 0 {
		t.Errorf("backups = %v", r.Backups)
	}
	if diff := cmp.Diff(before, listing(t, c.Home.Dir())); diff != "" {
		t.Errorf("the look changed the home:\n%s", diff)
	}
}

func TestSTO_18_AHomeThatIsNotThereIsAnErrorAndStaysAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	c, err := maintenanceOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := report(t, c); r.OK || !has(findings(r), "home-missing .") || r.Backups == nil || r.Sizes == nil || r.Schema == nil {
		t.Errorf("report = %+v", r)
	}
	if quick, err := c.Doctor().QuickCheck(t.Context()); err != nil || quick.OK {
		t.Errorf("QuickCheck = %+v, %v", quick, err)
	}
	if _, err := c.Snapshots().Backup(t.Context()); bridge.CodeOf(err) != bridge.NotFound || !strings.Contains(err.Error(), dir) {
		t.Errorf("Backup: %v", err)
	}
	if _, err := os.Stat(dir); !inventory.IsGone(err) {
		t.Errorf("the look made the home: %v", err)
	}
}

func TestSTO_01_BesideALiveBrokerTheReportIsTrue(t *testing.T) {
	c := newHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	db := openStore(t, c)
	appendMessages(t, db, 100, 200)
	if r := report(t, c); !r.OK || len(r.Findings) > 0 {
		t.Errorf("findings = %v", r.Findings)
	}
	appendMessages(t, db, 200, 210) // the look held nothing of the writer's
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

// damages are the ways to spoil a home, each with what the doctor must say.
var damages = []struct {
	want string
	do   func(t *testing.T, c Maintenance, random *rand.Rand)
}{
	{"store-lost bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { remove(t, c, "bridge.db") }},
	{"store-lost bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "bridge.db", "") }},
	{"database-unreadable bridge.db", func(t *testing.T, c Maintenance, random *rand.Rand) {
		spoil(t, c, "bridge.db", func(data []byte) []byte { copy(data, fmt.Sprintf("junk %d", random.Int())); return data })
	}},
	{"database-damaged|database-unreadable bridge.db", func(t *testing.T, c Maintenance, random *rand.Rand) { // a page of rubbish
		spoil(t, c, "bridge.db", func(data []byte) []byte {
			page := 1 + random.IntN(len(data)/4096-1)
			for i := page * 4096; i < (page+1)*4096; i++ {
				data[i] = byte(random.Uint32())
			}
			return data
		})
	}},
	{"database-damaged|database-unreadable bridge.db", func(t *testing.T, c Maintenance, random *rand.Rand) { // cut off
		spoil(t, c, "bridge.db", func(data []byte) []byte { return data[:4096*(2+random.IntN(len(data)/4096-3))+random.IntN(4000)] })
	}},
	{"database-foreign bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		remove(t, c, "bridge.db")
		makeDatabase(t, c, "bridge.db", "CREATE TABLE recipes (name TEXT); PRAGMA user_version = 3")
	}},
	{"database-foreign archive.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { // swapped
		spoil(t, c, "bridge.db", func(data []byte) []byte { write(t, c.Home.Dir(), "archive.db", string(data)); return data })
	}},
	{"database-foreign history.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "history.db", "CREATE TABLE recipes (name TEXT)")
	}},
	{"database-newer bridge.db", func(t *testing.T, c Maintenance, random *rand.Rand) {
		makeDatabase(t, c, "bridge.db", fmt.Sprintf("PRAGMA user_version = %d", 10+random.IntN(1000)))
	}},
	{"database-newer history.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "history.db", "CREATE TABLE x (y); PRAGMA user_version = 77")
	}},
	{"row-unreadable bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { decideOddly(t, c, `["bob"]`) }},
	{"row-newer bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { decideOddly(t, c, `{"team": "core"}`) }},
	{"row-replaced bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { decideOddly(t, c, "", `"all"`) }},
	{"row-unreadable bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "INSERT INTO session_bindings VALUES ('[\"claude\", 1', 's', 1)")
	}},
	{"outbox-stuck bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		sendAcross(t, c, "waiting", start.Add(-25*time.Hour))
	}},
	{"crossing-damaged bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		sendAcross(t, c, "waiting", start)
		makeDatabase(t, c, "bridge.db", "DELETE FROM messages WHERE id = 'across'")
	}},
	{"crossing-damaged bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "INSERT INTO remote_inbox (message_id, pc, arrived_at, news, told) VALUES ('x', 'desk', 1, 1, 2)")
	}},
	{"crossing-damaged bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "INSERT INTO remote_outbox (message_id, recipient, pc, state) VALUES (x'00ff', 'bob', 'desk', 'arrived')")
	}},
	{"crossing-damaged bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "INSERT INTO remote_decisions (decision_id, pc, arrived_at) VALUES ('gone', 'desk', 1)")
	}},
	{"row-newer bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) { sendAcross(t, c, "parked", start) }},
	{"schema-incomplete bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "DROP TABLE remote_outbox")
	}},
	{"database-references bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "PRAGMA foreign_keys = 0; CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE q (p REFERENCES p(id)); INSERT INTO q VALUES (7)")
	}},
	{"not-a-file bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		rename(t, c, "bridge.db", "runs/elsewhere.db")
		if err := os.Symlink(inventory.JoinHome(c.Home.Dir(), "runs/elsewhere.db"), c.Home.DB()); err != nil {
			t.Fatal(err)
		}
	}},
	{"not-a-file jobs.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		remove(t, c, "jobs.json")
		write(t, c.Home.Dir(), "jobs.json/inside", "x")
	}},
	{"not-a-folder backups", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		rename(t, c, "backups", "runs/elsewhere")
		write(t, c.Home.Dir(), "backups", "")
	}},
	{"not-a-folder archive/orphaned", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "archive/orphaned", "") }},
	{"not-a-file broker.lock", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "broker.lock/inside", "") }},
	{"unknown-file jobs/\xff.json", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "jobs/\xff.json", "{}") }},
	{"json-damaged jobs.json", func(t *testing.T, c Maintenance, random *rand.Rand) {
		spoil(t, c, "jobs.json", func(data []byte) []byte { return data[:1+random.IntN(len(data)-2)] })
	}},
	{"json-damaged config.json", func(t *testing.T, c Maintenance, random *rand.Rand) {
		write(t, c.Home.Dir(), "config.json", strings.Repeat("\x00", 1+random.IntN(300)))
	}},
	{"json-shape config.json", func(t *testing.T, c Maintenance, random *rand.Rand) {
		write(t, c.Home.Dir(), "config.json", fmt.Sprintf(`{"port": %d}`, 70000+random.IntN(1000)))
	}},
	{"json-shape remote-jobs.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "remote-jobs.json", `{"jobs": {"a": 1}}`)
	}},
	{"json-shape jobs.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "jobs.json", `{"version": 4, "jobs": [{"name": "a"}, 5]}`)
	}},
	{"json-shape config.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "config.json", `{"port": 4777, "autoWake": false, "port": 4778}`)
	}},
	{"json-shape approvals/7.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "approvals/7.json", `{"a": {"b": 1, "b": 2}}`)
	}},
	{"database-version bridge.db", func(t *testing.T, c Maintenance, random *rand.Rand) {
		makeDatabase(t, c, "bridge.db", fmt.Sprintf("PRAGMA user_version = %d", -1-random.IntN(5)))
	}},
	{"database-foreign bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "PRAGMA application_id = 252006674")
	}},
	{"schema-incomplete bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "DROP TABLE decision_deliveries")
	}},
	{"schema-incomplete bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "DROP TABLE delivery_stages")
	}},
	{"trigger-missing bridge.db", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		makeDatabase(t, c, "bridge.db", "DROP TRIGGER decisions_stay")
	}},
	{"json-shape jobs/7.json", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "jobs/7.json", `[1, 2]`) }},
	{"json-newer jobs.json", func(t *testing.T, c Maintenance, random *rand.Rand) {
		write(t, c.Home.Dir(), "jobs.json", fmt.Sprintf(`{"version": %d, "jobs": []}`, 5+random.IntN(100)))
	}},
	{"json-newer auto-wake.json", func(t *testing.T, c Maintenance, random *rand.Rand) {
		write(t, c.Home.Dir(), "auto-wake.json", fmt.Sprintf(`{"version": %d, "sessions": {"a": "later"}}`, 2+random.IntN(100)))
	}},
	{"json-shape auto-wake.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "auto-wake.json", `{"version": 1, "sessions": {"a": "later"}}`)
	}},
	{"json-damaged auto-wake.json", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "auto-wake.json", `{"version`) }},
	{"journal-damaged read-journal/bad.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "read-journal/bad.json", `[{"stage": "handed", "unheard": 1}]`)
	}},
	{"secret-damaged token", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "token", "short") }},
	{"symlink runs/link", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		if err := os.Symlink("/nowhere", inventory.JoinHome(c.Home.Dir(), "runs/link")); err != nil {
			t.Fatal(err)
		}
	}},
	{"open-to-others jobs.json", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		for _, path := range []string{c.Home.Dir(), inventory.JoinHome(c.Home.Dir(), "jobs.json")} {
			if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // that is the damage
				t.Fatal(err)
			}
		}
	}},
	{"open-to-others .", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		if err := os.Chmod(c.Home.Dir(), 0o755); err != nil {
			t.Fatal(err)
		}
	}},
	{"temp-abandoned .jobs.json.bridge-tmp-ABCDEF", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), ".jobs.json.bridge-tmp-ABCDEF", "half")
	}},
	{"unknown-file notes.txt", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "notes.txt", "mine") }},
	{"lease-stale .storage-users/999999-x", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), ".storage-users/999999-x", `{"pid": 999999, "identity": "gone:1", "program": "bridge serve"}`)
	}},
	{"lease-unreadable .storage-users/whose", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), ".storage-users/whose", "") }},
	{"lock-left .maintenance-lock", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), ".maintenance-lock", `{"pid": 999999, "identity": "gone:1", "what": "restore"}`)
	}},
	{"snapshot-damaged SNAPSHOT", func(t *testing.T, c Maintenance, random *rand.Rand) { // one bit
		spoil(t, c, newestSnapshot(t, c)+"/bridge.db", func(data []byte) []byte {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			return data
		})
	}},
	{"snapshot-damaged SNAPSHOT", func(t *testing.T, c Maintenance, _ *rand.Rand) { remove(t, c, newestSnapshot(t, c)+"/jobs.json") }},
	{"snapshot-damaged SNAPSHOT", func(t *testing.T, c Maintenance, _ *rand.Rand) { remove(t, c, newestSnapshot(t, c)+"/manifest.json") }},
	{"snapshot-damaged MESSAGES", func(t *testing.T, c Maintenance, random *rand.Rand) { // one bit
		spoil(t, c, newestMessages(t, c)+"/messages.db", func(data []byte) []byte {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			return data
		})
	}},
	{"snapshot-damaged MESSAGES", func(t *testing.T, c Maintenance, _ *rand.Rand) { remove(t, c, newestMessages(t, c)+"/manifest.json") }},
	{"drill-failed MESSAGES", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		line := fmt.Sprintf(`{"at": 1, "snapshot": %q, "ok": false, "detail": "the copy is torn"}`, filepath.Base(newestMessages(t, c)))
		write(t, c.Home.Dir(), "backups/drills.jsonl", line+"\n")
	}},
	{"snapshot-unfinished backups/.pending-x", func(t *testing.T, c Maintenance, _ *rand.Rand) {
		write(t, c.Home.Dir(), "backups/.pending-x/bridge.db", "half")
	}},
	{"unknown-file backups/holiday.zip", func(t *testing.T, c Maintenance, _ *rand.Rand) { write(t, c.Home.Dir(), "backups/holiday.zip", "x") }},
}

func remove(t testing.TB, c Maintenance, path string) {
	t.Helper()
	if err := os.Remove(inventory.JoinHome(c.Home.Dir(), path)); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, c Maintenance, from, to string) {
	t.Helper()
	if err := os.Rename(inventory.JoinHome(c.Home.Dir(), from), inventory.JoinHome(c.Home.Dir(), to)); err != nil {
		t.Fatal(err)
	}
}

func spoil(t *testing.T, c Maintenance, path string, how func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(inventory.JoinHome(c.Home.Dir(), path))
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), path, string(how(data)))
}

func makeDatabase(t testing.TB, c Maintenance, path, script string) {
	t.Helper()
	pool, err := sql.Open("sqlite", inventory.JoinHome(c.Home.Dir(), path))
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	if _, err := pool.Exec(script); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// sendAcross stores a message for a session of a paired PC, written at that time.
func sendAcross(t *testing.T, c Maintenance, state string, at time.Time) {
	t.Helper()
	makeDatabase(t, c, "bridge.db", fmt.Sprintf(`INSERT INTO messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id, hop, body, created_at)
			VALUES ('across', 'desk/api', 'p', 'p', 'claude', 'desk/api', 'across', 0, 'x', %d);
		INSERT INTO remote_outbox (message_id, recipient, pc, state) VALUES ('across', 'desk/api', 'desk-id', '%s')`, at.UnixMilli(), state))
}

// decideOddly records decisions on one topic with the given scopes.
func decideOddly(t *testing.T, c Maintenance, scopes ...string) {
	t.Helper()
	for i, scope := range scopes {
		makeDatabase(t, c, "bridge.db", fmt.Sprintf(`INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at)
			VALUES ('d%d', 'db', 'x', '%s', 'p', 'p', 'claude', 1)`, i, scope))
	}
}

func newestSnapshot(t *testing.T, c Maintenance) string {
	t.Helper()
	found, err := inventory.Sets(c.Home.Backups(), inventory.SnapshotName)
	if err != nil || len(found) == 0 {
		t.Fatal("no snapshot", err)
	}
	return "backups/" + found[0].Path
}

func newestMessages(t *testing.T, c Maintenance) string {
	t.Helper()
	return "message-backups/" + scopedSets(t, c.Home.MessageBackups())[0].Path
}

// TestSTO_01_DamagedHomes walks 200 homes, each damaged in a way and at a place
// that a seed picks: the damage is found under its name, and nothing changes.
func TestSTO_01_DamagedHomes(t *testing.T) {
	c := newHome(t)
	mustBackup(t, c)
	mustBackupMessages(t, c)
	for seed := range uint64(testkit.Rounds(t, max(80, len(damages)), 200)) { // each damage once at least
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 11))
			dir := filepath.Join(t.TempDir(), "home")
			copyHome(t, c.Home.Dir(), dir)
			here, err := maintenanceOf(dir)
			if err != nil {
				t.Fatal(err)
			}
			damage := damages[int(seed)%len(damages)]
			named := strings.NewReplacer("SNAPSHOT", newestSnapshot(t, here), "MESSAGES", newestMessages(t, here))
			damage.do(t, here, random)
			before := listing(t, dir)
			r := report(t, here)
			if !expected(findings(r), damage.want, named) {
				t.Errorf("want %s, found %v", damage.want, r.Findings)
			}
			for _, f := range r.Findings {
				if f.Detail == "" || f.Code.Hint() == "" || f.Severity != check.Error && f.Severity != check.Warning {
					t.Errorf("an incomplete finding: %+v", f)
				}
			}
			if r.OK != (r.Count(check.Error) == 0) {
				t.Errorf("ok = %v with %v", r.OK, r.Findings)
			}
			if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
				t.Errorf("the look changed the home:\n%s", diff)
			}
		})
	}
}

// expected reads "code|code path"; named puts the paths of the newest sets in.
func expected(found []string, want string, named *strings.Replacer) bool {
	codes, path, _ := strings.Cut(want, " ")
	path = named.Replace(path)
	for code := range strings.SplitSeq(codes, "|") {
		if has(found, code+" "+path) {
			return true
		}
	}
	return false
}

func TestSTO_02_EveryCodeIsDocumented(t *testing.T) {
	for code, kind := range check.Kinds() {
		if kind.Do == "" || kind.Severity != check.Error && kind.Severity != check.Warning {
			t.Errorf("%s: %+v", code, kind)
		}
		if kind.Fixable && kind.Severity == check.Error {
			t.Errorf("%s: a fix mends no errors", code)
		}
	}
}

func TestSTO_01_ATemporaryFileOfALiveWriterIsNotAbandoned(t *testing.T) {
	c := newHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	const temp = ".jobs.json.bridge-tmp-ABCDEF"
	write(t, c.Home.Dir(), temp, "being written")
	c.Now = time.Now
	if found := findings(report(t, c)); has(found, "temp-abandoned "+temp) {
		t.Errorf("beside a writer: %v", found)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if found := findings(report(t, c)); !has(found, "temp-abandoned "+temp) {
		t.Errorf("without a writer: %v", found)
	}
}

func TestSTO_01_ACancelledLookEnds(t *testing.T) {
	c := newHome(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Doctor().Check(ctx); err == nil {
		t.Error("Check went on without a context")
	}
}

func TestSTO_01_AFolderThatCannotBeReadIsAFinding(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("rights keep this user from nothing")
	}
	c := newHome(t)
	for _, folder := range []string{"logs", "backups", ".storage-users"} {
		if err := os.MkdirAll(inventory.JoinHome(c.Home.Dir(), folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(inventory.JoinHome(c.Home.Dir(), folder), 0); err != nil {
			t.Fatal(err)
		}
		if found := findings(report(t, c)); !has(found, "file-unreadable "+folder) {
			t.Errorf("%s: %v", folder, found)
		}
		if err := os.Chmod(inventory.JoinHome(c.Home.Dir(), folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
