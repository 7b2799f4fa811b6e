package soak

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/transfer"
	"bridge/backend/testing/testkit"
)

// bodyBytes is the length of the messages that fill a big store.
const bodyBytes = 4000

// TestSTO_04_STO_07_STO_08_ABigStoreUnderLoad snapshots, proves and archives a big
// store while a broker serves it and two sessions talk: every work succeeds, and
// every message that was acknowledged meanwhile arrives once.
func TestSTO_04_STO_07_STO_08_ABigStoreUnderLoad(t *testing.T) {
	size := testkit.Rounds(t, 16, 256) // MiB
	dir, err := os.MkdirTemp("", "big")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home, err := config.ResolveHome(filepath.Join(dir, "h"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	rows := fillStore(t, home, size)
	talk := beginTalk(t, home)
	talk.during("quiet", func() { pause(4 * time.Second) })
	for _, work := range [][]string{{"--backup"}, {"--drill"}, {"--archive", "--yes"}} {
		talk.during(work[0], func() {
			out, err := exec.Command(program, append([]string{"doctor", "--home", home.Dir()}, work...)...).CombinedOutput()
			if err != nil {
				t.Errorf("doctor %v: %v %s", work, err, out)
			}
		})
	}
	talk.end()
	// The broker itself moves some of them within the store meanwhile.
	archived, archiveErr := transfer.Counts(t.Context(), home.Archive(), false)
	own, ownErr := transfer.Counts(t.Context(), home.DB(), false)
	if left := own["messages"] - len(talk.sent); archiveErr != nil || ownErr != nil || left != 0 || archived["archived_messages"]+own["archived_messages"] < rows {
		t.Errorf("of %d rows %d were archived, %d in the store itself, and %d were not; %v, %v",
			rows, archived["archived_messages"], own["archived_messages"], left, archiveErr, ownErr)
	}
	began := time.Now()
	report, err := maintain.Maintenance{Home: home, Program: "the soak", Now: time.Now}.Doctor().Check(t.Context())
	if err != nil || !report.OK {
		t.Errorf("the doctor: %v, %+v", err, report.Findings)
	}
	t.Logf("%-10s %8.1f s  (reads %d MiB)", "doctor", time.Since(began).Seconds(), report.TotalBytes>>20)
}

// fillStore makes a store of about so many MiB of old messages that were read.
func fillStore(t *testing.T, home config.Home, mib int) (rows int) {
	t.Helper()
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), home.DB(), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	rows = mib << 20 / bodyBytes
	pool, err := sql.Open("sqlite", home.DB())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.Exec(`WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ?)
		INSERT INTO messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id, hop, body, created_at, read_at)
		SELECT printf('old-%09d', n), 'long-ago', 'long-ago-2', 'carol', 'claude', 'dave', printf('c%d', n % 1000), 0,
			printf('%s %d ', 'an old message number', n) || hex(zeroblob(?)), 1000000 + n, 1000000 + n FROM count`, rows, bodyBytes/2)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// talk is a broker with two sessions: alice sends, bob reads.
type talk struct {
	*testing.T
	home       config.Home
	serve      *exec.Cmd
	alice, bob *ipc.Client
	stop       context.CancelFunc
	running    sync.WaitGroup

	mu   sync.Mutex
	took []time.Duration // of the sends since during was called
	sent map[string]int
	seen map[string]int
}

func beginTalk(t *testing.T, home config.Home) *talk {
	t.Helper()
	k := &talk{T: t, home: home, sent: map[string]int{}, seen: map[string]int{}}
	k.serve = exec.Command(program, "serve", "--port", "0", "--home", home.Dir())
	if err := k.serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.serve.Process.Kill() }) // it may have ended
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	k.alice, k.bob = k.join(ctx, "alice"), k.join(ctx, "bob")
	k.running.Go(func() { k.sends(ctx) })
	k.running.Go(func() { k.reads(ctx) })
	return k
}

func (k *talk) join(ctx context.Context, name string) *ipc.Client {
	k.Helper()
	var client *ipc.Client
	for deadline := time.Now().Add(settle); client == nil; pause(20 * time.Millisecond) {
		token, err := k.home.ExistingToken()
		if err == nil {
			client, err = ipc.Dial(ctx, ipc.Target{Socket: k.home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "soak"})
		}
		if err != nil && time.Now().After(deadline) {
			k.Fatal(err)
		}
	}
	if _, err := client.Register(ctx, api.Register{Kind: bridge.Codex, Name: name, SessionID: "host-" + name, Cwd: k.home.Dir(), AgentPID: os.Getpid()}); err != nil {
		k.Fatal(err)
	}
	return client
}

func (k *talk) sends(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("new-%07d", n)
		began := time.Now()
		_, err := k.alice.Send(context.Background(), api.SendArgs{To: "bob", Body: "under load " + id, MessageID: id})
		if err != nil {
			k.Errorf("send %s: %v", id, err)
			return
		}
		k.mu.Lock()
		k.took = append(k.took, time.Since(began))
		k.sent[id]++
		k.mu.Unlock()
		pause(10 * time.Millisecond)
	}
}

func (k *talk) reads(ctx context.Context) {
	for ctx.Err() == nil {
		k.inbox()
		pause(50 * time.Millisecond)
	}
}

// inbox takes what waits for bob and reports how much it was.
func (k *talk) inbox() int {
	box, err := k.bob.Inbox(context.Background(), api.InboxArgs{Limit: 100, MarkRead: true})
	if err == nil && box.Lease != nil {
		err = k.bob.Ack(context.Background(), api.Ack{Lease: *box.Lease, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: "inbox"})
	}
	if err != nil {
		k.Errorf("inbox: %v", err)
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range box.Messages {
		k.seen[m.ID]++
	}
	return len(box.Messages)
}

// count is how many sends were answered since during was called.
func (k *talk) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.took)
}

// during says how long work took and how the sends fared meanwhile.
func (k *talk) during(name string, work func()) {
	k.Helper()
	k.mu.Lock()
	k.took = nil
	k.mu.Unlock()
	began := time.Now()
	work()
	took := time.Since(began)
	for deadline := time.Now().Add(settle); k.count() == 0 && time.Now().Before(deadline); { // the work may be shorter than a send
		pause(20 * time.Millisecond)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.took) == 0 {
		k.Errorf("%s: nothing was sent meanwhile", name)
		return
	}
	slices.Sort(k.took)
	at := func(p float64) time.Duration {
		return k.took[int(p*float64(len(k.took)-1))].Round(10 * time.Microsecond)
	}
	k.Logf("%-10s %8.1f s  %6d sends meanwhile: median %s, p99 %s, longest %s", name, took.Seconds(), len(k.took), at(0.5), at(0.99), at(1))
}

// end ends the talk and the broker, and counts.
func (k *talk) end() {
	k.Helper()
	k.stop()
	k.running.Wait()
	for k.inbox() > 0 {
	}
	for id := range k.sent {
		if k.seen[id] != 1 {
			k.Errorf("%s arrived %d times", id, k.seen[id])
		}
	}
	if err := k.serve.Process.Signal(syscall.SIGTERM); err != nil {
		k.Error(err)
	}
	if err := k.serve.Wait(); err != nil {
		k.Errorf("serve ended with %v", err)
	}
}
