package files

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generous is longer than anything takes that will come at all.
const generous = time.Minute

// quick is a pace at which nobody waits long for what a test has taken away.
var quick = Timing{PollInterval: time.Millisecond, Timeout: 300 * time.Millisecond, Idle: generous, Busy: 5 * time.Millisecond}

// pc is one PC of a test: a home, and its transfers over one end of a transport.
type pc struct {
	*Transfers
	t    *testing.T
	end  *pairingtest.End
	home config.Home

	mu     sync.Mutex
	policy remote.Policy
	broken error
}

func newPC(t *testing.T, end *pairingtest.End, other string) *pc {
	t.Helper()
	home, err := config.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	p := &pc{t: t, end: end, home: home, policy: remote.Policy{Enabled: true, Files: remote.Files{AllowPeers: []string{other}}}}
	p.start(disk.Files{}, quick)
	t.Cleanup(func() { p.Close() })
	return p
}

// start has the PC's program run, with a disk and a pace.
func (p *pc) start(files disk.Files, pace Timing) {
	p.t.Helper()
	transfers, err := Open(Options{
		Home: p.home, Transport: p.end, Policy: p.allowed, Changed: func() {}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Disk: files, Timing: pace, MarkEvery: markInTests,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Transfers = transfers
	p.end.Serve(transfers.Take)
	transfers.Run()
}

// restart ends the PC's program and starts the next one.
func (p *pc) restart() {
	p.Close()
	p.start(disk.Files{}, quick)
}

func (p *pc) allowed() (remote.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policy, p.broken
}

func (p *pc) allow(change func(*remote.Policy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.policy)
}

// each runs a test over every transport.
func each(t *testing.T, test func(t *testing.T, laptop, desk *pc)) {
	t.Helper()
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := join(t, remote.FilesCapability)
			test(t, newPC(t, a, "desk"), newPC(t, b, "laptop"))
		})
	}
}

// await waits for the end of a transfer.
func (p *pc) await(id string) api.Transfer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), generous)
	defer cancel()
	var seen int64
	for {
		transfer, err := p.Await(ctx, id, seen)
		if err != nil {
			p.t.Fatalf("transfer %s: %v", id, err)
		}
		if transfer.HasEnded() {
			return transfer
		}
		seen = transfer.Revision
	}
}

// arrived waits until a transfer is one that this PC knows, and has ended.
func (p *pc) arrived(id string) api.Transfer {
	p.t.Helper()
	deadline := time.After(generous)
	for {
		p.Transfers.mu.Lock()
		known, changed := p.records[id] != nil, p.changed
		p.Transfers.mu.Unlock()
		if known {
			return p.await(id)
		}
		select {
		case <-changed:
		case <-deadline:
			p.t.Fatalf("transfer %s never came", id)
		}
	}
}

// made makes files of the given content below a new folder and returns their paths.
func made(t *testing.T, content map[string][]byte) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "sent")
	for name, data := range content {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := testkit.WriteProgram(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// noise is n bytes that say nothing.
func noise(n int) []byte {
	data := make([]byte, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// holds compares a folder with what it is to hold, modes included.
func holds(t *testing.T, folder string, want map[string][]byte) {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := disk.PrivateFile
		if entry.IsDir() {
			mode = disk.PrivateDir
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		name, _ := filepath.Rel(folder, path)
		name = filepath.ToSlash(name)
		found = append(found, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if wanted, isWanted := want[name]; !isWanted || !bytes.Equal(data, wanted) {
			t.Errorf("%s has %d bytes that are not those that were sent (wanted: %t)", name, len(data), isWanted)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(want) {
		slices.Sort(found)
		t.Errorf("there are %d files instead of %d: %s", len(found), len(want), strings.Join(found, ", "))
	}
}

// shown lists what is in a PC's inbox.
func (p *pc) shown() []string {
	entries, err := os.ReadDir(filepath.Join(p.home.Dir(), "inbox"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// nothingLeft checks that a PC shows nothing and keeps no part of a transfer.
func (p *pc) nothingLeft() {
	p.t.Helper()
	if shown := p.shown(); len(shown) > 0 {
		p.t.Errorf("the inbox has %q", shown)
	}
	entries, err := os.ReadDir(filepath.Join(p.home.Dir(), "network", "incoming"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	for _, entry := range entries {
		p.t.Errorf("there is still %s", entry.Name())
	}
}

// below is content as it arrives: in the folder that was sent.
func below(content map[string][]byte) map[string][]byte {
	moved := map[string][]byte{}
	for name, data := range content {
		moved["sent/"+name] = data
	}
	return moved
}

func failed(t *testing.T, transfer api.Transfer, code bridge.Code, says string) {
	t.Helper()
	if transfer.State != api.TransferFailed || transfer.Code != string(code) || !strings.Contains(transfer.Error, says) || strings.Contains(transfer.Error, "\n") {
		t.Errorf("it ended as %s, %s: %q; wanted %s: %q", transfer.State, transfer.Code, transfer.Error, code, says)
	}
}

// tap lets a test see, drop or change what one end is brought.
func (p *pc) tap(each func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool)) {
	p.end.Serve(func(from remote.PC, frame remote.Frame) {
		fileFrame, err := remote.ParseFileFrame(frame.Payload, len(frame.Body))
		if err != nil {
			p.t.Errorf("%s came: %v", frame.Payload, err)
		}
		if frame, pass := each(frame, fileFrame); pass {
			p.Take(from, frame)
		}
	})
}
