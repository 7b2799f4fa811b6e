package store

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/upgrade"
)

// openDeferred opens a store beside a live program that knows only the version.
func openDeferred(t testing.TB, path string, version int) *DB {
	t.Helper()
	opts := testOptions()
	opts.OldestReader = version
	db, err := Open(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

func mustClose(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// shape is the whole schema of a store and its number.
func shape(t testing.TB, path string) []string {
	t.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	return column(t, pool, "SELECT name || ' ' || ifnull(sql, '') FROM sqlite_schema UNION ALL SELECT user_version FROM pragma_user_version")
}

// answers is everything that a reader tells, but for what was expired by.
func answers(t testing.TB, r *Reader) map[string]any {
	t.Helper()
	ctx := t.Context()
	told := map[string]any{}
	keep := func(name string, answer any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		told[name] = answer
	}
	recent, err := r.Recent(ctx, 100)
	keep("recent", recent, err)
	for _, peer := range []string{"alice", "bob", "carol", "peer-claude:s1"} {
		unread, err := r.Unread(ctx, peer, 100, nil)
		keep("unread of "+peer, unread, err)
		waiting, err := r.Waiting(ctx, peer, 100, nil)
		keep("waiting of "+peer, waiting, err)
		talk, err := r.Conversation(ctx, peer, 0, 100)
		keep("conversation of "+peer, talk, err)
	}
	found, err := r.Decisions(ctx, decision.Lookup{History: true})
	keep("decisions", found, err)
	delivered, err := r.Delivered(ctx, "claude:s1")
	keep("delivered", delivered, err)
	peers, err := r.Peers(ctx)
	keep("peers", peers, err)
	return told
}

// work does everything that a broker does with a store.
func work(t testing.TB, db *DB) {
	t.Helper()
	ctx := t.Context()
	appendAll(t, db, note("w1", "alice", "first", 9000, "bob", "carol"), note("w2", "alice", "second", 9001, "bob"), note("w3", "alice", "third", 9002, "bob"))
	for id, stage := range map[string]bridge.Stage{"w1": bridge.StageConsumed, "w2": bridge.StageHanded, "w3": bridge.StageWoken} {
		if err := db.Record(ctx, stage, []mail.Mark{{MessageID: id, Recipient: "bob", At: 9100, Evidence: "a hook"}}); err != nil {
			t.Fatal(err)
		}
	}
	if marks, err := db.ConsumeHandedOver(ctx, "bob", 9200, 9300, "activity", none); err != nil || len(marks) != 1 {
		t.Fatalf("ConsumeHandedOver = %v, %v", marks, err)
	}
	reply := note("r1", "bob", "an answer", 9400, "alice")
	reply[0].ReplyTo = "w1"
	appendAll(t, db, reply)
	if _, fresh, err := db.Append(ctx, reply); err != nil || fresh {
		t.Fatalf("the same send again: fresh %v, %v", fresh, err)
	}
	if found := mustFind(t, db.Reader, "w1"); !found.Deliveries[0].Answered.Happened() {
		t.Errorf("w1 is not answered: %+v", found.Deliveries[0])
	}
	decide(t, db, revision("new1", "topic", "so", 9500, decision.AllSessions()), "claude:s1")
	decide(t, db, revision("new2", "topic", "or so", 9600, decision.AllSessions()), "claude:s1")
	unread, err := db.Unread(ctx, "peer-claude:s1", 10, nil)
	if err != nil || len(unread) != 2 || unread[1].Body != "or so" {
		t.Errorf("the notices of two decisions: %+v, %v", unread, err)
	}
	if err := db.SavePeer(ctx, Peer{ID: "p9", Name: "nine", Agent: bridge.Codex, SessionID: "s9", SeenAt: 9700}); err != nil {
		t.Fatal(err)
	}
	if err := db.LinkDecisionReceipts(ctx, "claude:s1", "claude:s2"); err != nil {
		t.Fatal(err)
	}
	appendAll(t, db, note("w4", "bob", "to a process", 9800, "process-7"))
	if err := db.Reassign(ctx, "process-7", "carol"); err != nil {
		t.Fatal(err)
	}
	if expired, err := db.Expire(ctx, ExpireRule{TTLBefore: 99_000, Limit: 100}); err != nil || len(expired) != 0 {
		t.Errorf("mail expired while the store keeps its schema: %v, %v", expired, err)
	}
}

func TestVER_04_EveryVersionIsDeferredAndLaterUpgradedWithEverything(t *testing.T) {
	for version := range schema.Version {
		t.Run(fmt.Sprintf("VER-04 at %d", version), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bridge.db")
			buildField(t, path, version)
			before, was := contents(t, path), shape(t, path)
			reader := helper(t, "old reader", path)
			if got := reader.line(t); got != "3" {
				t.Fatalf("the older program reads %q messages", got)
			}
			db := openDeferred(t, path, max(version, 1))
			if db.Version() != version {
				t.Errorf("Version = %d", db.Version())
			}
			work(t, db)
			want := answers(t, db.Reader)
			beside, err := OpenReader(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer beside.Close()
			if diff := cmp.Diff(want, answers(t, beside)); diff != "" {
				t.Errorf("another process reads (-broker +other):\n%.2000s", diff)
			}
			reader.ask(t)
			if got := []string{reader.line(t), reader.line(t)}; got[0] != "3" || got[1] != "11" {
				t.Errorf("the older program read %q in its transaction and after it", got)
			}
			mustClose(t, db)
			if diff := cmp.Diff(was, shape(t, path)); diff != "" {
				t.Errorf("the schema changed:\n%s", diff)
			}
			after := contents(t, path)
			for table := range after {
				if _, known := before[table]; !known {
					t.Errorf("a table %s came", table)
				}
			}
			offline, err := OpenReader(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, answers(t, offline)); diff != "" {
				t.Errorf("without a broker (-broker +none):\n%.2000s", diff)
			}
			if err := offline.Close(); err != nil {
				t.Fatal(err)
			}
			db = openDeferred(t, path, max(version, 1))
			if diff := cmp.Diff(want, answers(t, db.Reader)); diff != "" {
				t.Errorf("the next broker (-first +next):\n%.2000s", diff)
			}
			mustClose(t, db)
			reader.kill(t)
			if runtime.GOOS == "windows" { // no file is moved there that a program has open
				if err := beside.Close(); err != nil {
					t.Fatal(err)
				}
			}

			db = openAt(t, path) // elected after the older program left
			if db.Version() != schema.Version {
				t.Errorf("Version = %d", db.Version())
			}
			if diff := cmp.Diff(want, answers(t, db.Reader)); diff != "" {
				t.Errorf("after the upgrade (-deferred +upgraded):\n%.2000s", diff)
			}
			requireCarried(t, path)
			mustClose(t, db)
			checkWhole(t, path)
		})
	}
}

// requireCarried wants the sidecar put away and its bytes kept.
func requireCarried(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(upgrade.SidecarPath(path)); !os.IsNotExist(err) {
		t.Errorf("the compatibility store is still in place: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".migration-snapshots", "compat.db.carried-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	checkWhole(t, kept[0])
}

func init() {
	// old reader: path. It counts messages in a transaction that it holds; asked,
	// it counts there again, and once more after it.
	helperParts["old reader"] = func(ctx context.Context, path string) error {
		pool, err := sql.Open("sqlite", sqlitex.DSN(path))
		if err != nil {
			return err
		}
		pool.SetMaxOpenConns(1)
		count := func(before, after string) (n int) {
			if err == nil {
				_, err = pool.ExecContext(ctx, before)
			}
			if err == nil {
				err = pool.QueryRowContext(ctx, "SELECT count(*) FROM messages").Scan(&n)
			}
			if err == nil {
				_, err = pool.ExecContext(ctx, after)
			}
			return n
		}
		fmt.Println(count("BEGIN", ""))
		scanner := bufio.NewScanner(os.Stdin)
		for scanner.Scan() && err == nil {
			fmt.Println(count("", "COMMIT"))
			fmt.Println(count("", ""))
		}
		return err
	}
	// work deferred: path and round. It sends and decides in a store of version 2
	// until it is killed, and prints what was acknowledged.
	helperParts["work deferred"] = func(ctx context.Context, args string) error {
		path, round, _ := strings.Cut(args, "\n")
		opts := testOptions()
		opts.OldestReader = 2
		db, err := Open(ctx, path, opts)
		if err != nil {
			return err
		}
		var group errgroup.Group
		for sender := range 3 {
			group.Go(func() error {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%s-%d-%d", round, sender, i)
					if _, _, err := db.Append(ctx, note("m-"+id, "a", "body ✓", int64(i), "b", "c")); err != nil {
						return err
					}
					fmt.Println("m-" + id)
					if _, _, err := db.RecordDecision(ctx, revision("d-"+id, "topic", "so", int64(i), decision.AllSessions()), tell("claude:s")); err != nil {
						return err
					}
					fmt.Println("d-" + id)
				}
			})
		}
		return group.Wait()
	}
	// carry: path and step. It opens the store and kills itself before that step.
	helperParts["carry"] = func(ctx context.Context, args string) error {
		path, at, _ := strings.Cut(args, "\n")
		opts := testOptions()
		opts.step = func(name string, _ *sql.Conn) error {
			if name == at {
				self, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = self.Kill()
				}
				return err
			}
			return nil
		}
		_, err := Open(ctx, path, opts)
		return err
	}
}

// deferredStore makes a store of a version with what a broker did while its upgrade was deferred.
func deferredStore(t testing.TB, version int) (path string, want map[string]any) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, version)
	db := openDeferred(t, path, version)
	work(t, db)
	want = answers(t, db.Reader)
	mustClose(t, db)
	return path, want
}

func TestVER_04_ACrashAtAnyStepOfTheCarryOverLosesNothingAndDoublesNothing(t *testing.T) {
	for _, version := range []int{1, 3, 8} {
		var names []string
		path, _ := deferredStore(t, version)
		opts := testOptions()
		opts.step = func(name string, _ *sql.Conn) error { names = append(names, name); return nil }
		db, err := Open(t.Context(), path, opts)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, db)
		if !slices.Contains(names, "carried over") || len(names) < 4 {
			t.Fatalf("the steps from %d: %q", version, names)
		}
		for _, at := range names {
			t.Run(fmt.Sprintf("VER-04 from %d at %s", version, at), func(t *testing.T) {
				t.Parallel()
				path, want := deferredStore(t, version)
				child := helper(t, "carry", path+"\n"+at)
				if err := child.cmd.Wait(); err == nil || child.cmd.ProcessState.ExitCode() > 0 && runtime.GOOS != "windows" {
					t.Fatalf("the carry-over ended by itself: %v", err)
				}
				db := openAt(t, path)
				if diff := cmp.Diff(want, answers(t, db.Reader)); diff != "" {
					t.Errorf("after the crash (-deferred +upgraded):\n%.2000s", diff)
				}
				requireCarried(t, path)
			})
		}
	}
}

// TestVER_04_ACrashBetweenTheTwoCommits puts the sidecar of before a piece of
// work beside the store of after it, as a crash between the two commits leaves
// them.
func TestVER_04_ACrashBetweenTheTwoCommitsLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 2)
	db := openDeferred(t, path, 2)
	appendAll(t, db, note("w1", "alice", "a question", 9000, "bob"), note("w2", "alice", "another one", 9001, "bob"))
	mustClose(t, db)
	inStore(t, path, "INSERT INTO archived_messages SELECT *, 'old', 9002 FROM messages WHERE id = 'w2'; DELETE FROM messages WHERE id = 'w2'")
	older, err := os.ReadFile(upgrade.SidecarPath(path))
	if err != nil {
		t.Fatal(err)
	}
	db = openDeferred(t, path, 2)
	for id, reply := range map[string]struct {
		from, to string
		at       int64
	}{"r1": {"bob", "w1", 9400}, "r2": {"bob", "w2", 9300}, "r3": {"carol", "w1", 9200}} { // carol never had w1
		note := note(id, reply.from, "an answer", reply.at, "alice")
		note[0].ReplyTo = reply.to
		appendAll(t, db, note)
	}
	if err := db.Record(t.Context(), bridge.StageConsumed, []mail.Mark{{MessageID: "w1", Recipient: "bob", At: 9100, Evidence: "a hook"}}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	if err := os.WriteFile(upgrade.SidecarPath(path), older, 0o600); err != nil {
		t.Fatal(err)
	}
	db = openDeferred(t, path, 2)
	found := mustFind(t, db.Reader, "w1").Deliveries[0]
	if found.Consumed.At != 9100 || found.Answered.At != 9400 {
		t.Errorf("w1 = %+v", found)
	}
	if found := mustFind(t, db.Reader, "w2").Deliveries[0]; found.Answered.At != 9300 {
		t.Errorf("w2 = %+v", found)
	}
	if talk, err := db.Conversation(t.Context(), "bob", 0, 10); err != nil || len(talk) == 0 || talk[0].ID != "r1" {
		t.Errorf("bob's conversation: %v, %v", ids(talk), err)
	}
	mustClose(t, db)
	sidecar, err := sql.Open("sqlite", sqlitex.DSN(upgrade.SidecarPath(path), "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	if strangers := column(t, sidecar, "SELECT message_id FROM delivery_stages WHERE recipient = 'carol'"); len(strangers) > 0 {
		t.Errorf("an answer of somebody who never had %v counts", strangers)
	}
	sidecar.Close()
	db = openDeferred(t, path, 2)
	// A notice whose message is in the store already does not come twice.
	decide(t, db, revision("d9", "topic", "so", 9500, decision.AllSessions()), "claude:s1")
	mustClose(t, db)
	inStore(t, upgrade.SidecarPath(path), `INSERT INTO outbox SELECT 'n-d9', 'peer-claude:s1', 'alice', 'name-alice', 'claude', 'target', 'c-n-d9', NULL, 1, 'so', 9500, NULL`)
	db = openDeferred(t, path, 2)
	if unread, err := db.Unread(t.Context(), "peer-claude:s1", 10, nil); err != nil || len(unread) != 1 {
		t.Errorf("notices: %+v, %v", unread, err)
	}
}

// TestVER_04_WhatADeferredStoreAcknowledgedSurvivesAKill kills brokers of a deferred
// store and looks for every message, every decision and its one notice.
func TestVER_04_WhatADeferredStoreAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 2)
	acknowledged := map[string]bool{}
	whole := func(db *DB) {
		t.Helper()
		decisions, err := db.Decisions(t.Context(), decision.Lookup{History: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, rev := range decisions {
			if row, err := db.Find(t.Context(), "n-"+rev.ID); err != nil || len(row.Deliveries) != 1 {
				t.Errorf("the notice of %s: %+v, %v", rev.ID, row, err)
			}
			delete(acknowledged, rev.ID)
		}
		for id := range acknowledged {
			if row, err := db.Find(t.Context(), id); err != nil || len(row.Deliveries) != 2 {
				t.Errorf("%s was acknowledged: %+v, %v", id, row, err)
			}
		}
		for _, rev := range decisions {
			acknowledged[rev.ID] = true
		}
	}
	for round := range 6 {
		child := helper(t, "work deferred", fmt.Sprintf("%s\n%d", path, round))
		for range 1 + rand.IntN(60) {
			acknowledged[child.line(t)] = true
		}
		for _, line := range child.kill(t) { // printed before the kill
			acknowledged[line] = true
		}
		db := openDeferred(t, path, 2)
		whole(db)
		mustClose(t, db)
		if got := checkWhole(t, path); got != 2 {
			t.Errorf("user_version = %d", got)
		}
	}
	whole(openAt(t, path))
	requireCarried(t, path)
}

func TestVER_04_OnlyAnOlderProgramDefersAnUpgrade(t *testing.T) {
	tests := []struct {
		name           string
		version, known int
		want           int
	}{
		{"none is alive", 3, 0, schema.Version},
		{"it knows the newest", 3, schema.Version, schema.Version},
		{"it knows more", 3, schema.Version + 1, schema.Version},
		{"it knows the present one", 3, 3, 3},
		{"it knows one between", 3, 7, 3},
		{"the store is the newest already", schema.Version, 3, schema.Version},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			buildField(t, path, tt.version)
			if db := openDeferred(t, path, tt.known); db.Version() != tt.want {
				t.Errorf("Version = %d, want %d", db.Version(), tt.want)
			}
			if _, err := os.Lstat(upgrade.SidecarPath(path)); (err == nil) != (tt.want < schema.Version) {
				t.Errorf("a sidecar beside version %d: %v", tt.want, err)
			}
		})
	}
	t.Run("there is no store yet", func(t *testing.T) {
		if db := openDeferred(t, filepath.Join(t.TempDir(), "bridge.db"), 3); db.Version() != schema.Version {
			t.Errorf("Version = %d", db.Version())
		}
	})
}

func TestVER_04_AForeignOrNewerCompatibilityStoreIsRefusedUnchanged(t *testing.T) {
	for name, script := range map[string]string{"foreign": "CREATE TABLE x (y)", "newer": "CREATE TABLE outbox (y); PRAGMA user_version = 2"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			buildField(t, path, 3)
			inStore(t, upgrade.SidecarPath(path), script)
			before := shape(t, upgrade.SidecarPath(path))
			opts := testOptions()
			opts.OldestReader = 3
			for range 2 { // deferred, then upgraded
				if db, err := Open(t.Context(), path, opts); bridge.CodeOf(err) != bridge.Unsupported {
					t.Errorf("Open = %v, %v", db, err)
				}
				opts.OldestReader = 0
			}
			if diff := cmp.Diff(before, shape(t, upgrade.SidecarPath(path))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A copy of a store, or one of a program that keeps no log, is in the journal
// mode that SQLite begins with.
func TestVER_04_AStoreWithoutALogIsDeferredToo(t *testing.T) {
	for version := 1; version < schema.Version; version++ {
		path := filepath.Join(t.TempDir(), "bridge.db")
		buildField(t, path, version)
		inStore(t, path, "PRAGMA journal_mode = DELETE")
		db := openDeferred(t, path, version)
		appendAll(t, db, note("new", "alice", "deferred", 1000, "bob"))
		if db.Version() != version {
			t.Errorf("version %d became %d", version, db.Version())
		}
	}
}
