package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// wire is a transport as one program has it: it can be cut, and is when its program
// has died.
type wire struct {
	pairing.Transport
	down *atomic.Bool
	dead atomic.Bool
}

func (w *wire) isDown() bool { return w.down.Load() || w.dead.Load() }

var errCut = bridge.Errorf(bridge.Unavailable, "there is no link")

func (w *wire) Send(ctx context.Context, id string, frame remote.Frame) error {
	if w.isDown() {
		return errCut
	}
	return w.Transport.Send(ctx, id, frame)
}

func (w *wire) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	if w.isDown() {
		return errCut
	}
	return w.Transport.SendBulk(ctx, id, frame)
}

func (w *wire) Of(id string) (remote.Status, error) {
	status, err := w.Transport.Of(id)
	status.Up = status.Up && !w.isDown()
	return status, err
}

// impatient sides find out soon that the other one has died.
var impatient = Timing{PollInterval: time.Millisecond, Timeout: 60 * time.Millisecond, Idle: generous, Busy: time.Millisecond}

const markInTests = 300 << 10

// program is one life of a PC's program, which may die at a step of its disk.
type program struct {
	*Transfers
	wire *wire
	died chan struct{} // closed at that step

	released chan struct{}
	steps    atomic.Int64
}

// live starts a program on a home. It dies at the step of that number: nothing that it
// does from there on is done. 0 is never.
func (p *pc) live(down *atomic.Bool, dieAt int64) *program {
	p.t.Helper()
	item := &program{wire: &wire{Transport: p.end, down: down}, died: make(chan struct{}), released: make(chan struct{})}
	var once sync.Once
	before := func(disk.Step, string) error {
		if n := item.steps.Add(1); dieAt == 0 || n < dieAt {
			return nil
		}
		item.wire.dead.Store(true)
		once.Do(func() { close(item.died) })
		<-item.released
		return errors.New("it has died")
	}
	var err error
	item.Transfers, err = Open(Options{
		Home: p.home, Transport: item.wire, Policy: p.allowed, Changed: func() {}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Disk: disk.Files{Before: before}, Timing: impatient, MarkEvery: markInTests,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Transfers = item.Transfers
	p.t.Cleanup(item.bury)
	ran := make(chan struct{})
	go func() { // it may die in there
		defer close(ran)
		item.Run()
	}()
	select {
	case <-ran:
	case <-item.died:
	}
	p.end.Serve(func(from remote.PC, frame remote.Frame) {
		if !item.wire.isDown() {
			item.Take(from, frame)
		}
	})
	return item
}

var burying sync.Mutex

// bury lets go of what a dead program holds.
func (item *program) bury() {
	burying.Lock()
	defer burying.Unlock()
	select {
	case <-item.released:
	default:
		close(item.released)
	}
	item.Close()
}

// spoil puts rubbish where a crash may have left anything: behind what was noted as
// durable.
func spoil(t *testing.T, p *pc, id string) {
	t.Helper()
	r := p.records[id]
	if r == nil {
		return
	}
	s := &store{folder: p.partial(id), offer: r.Offer}
	encoded, err := os.ReadFile(filepath.Join(s.folder, manifestFile))
	if err != nil {
		return
	}
	manifest, err := remote.ParseManifest(encoded, r.Offer)
	if err != nil {
		t.Fatalf("the manifest on the disk: %v", err)
	}
	safe := max(s.noted()-int64(len(encoded)), 0)
	for _, file := range manifest.Files {
		path := filepath.Join(s.content(), filepath.FromSlash(file.Path))
		if info, err := os.Stat(path); err == nil && info.Size() > safe {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := safe; i < int64(len(data)); i++ {
				data[i] = 0xee
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		safe = max(safe-file.Bytes, 0)
	}
}

var crashed = map[string][]byte{"a": noise(100), "b/empty": {}, "b/large": noise(900 << 10), "z": noise(300)}

// TestRMT_20_AReceiverThatDiesAnywhere dies at each step of its disk, loses what was
// not durable, and starts again: the files arrive once, whole.
func TestRMT_20_AReceiverThatDiesAnywhere(t *testing.T) {
	t.Parallel()
	path := []string{made(t, crashed)}
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step := int64(1); ; step++ {
				if done := dieReceiving(t, join, path, step); done {
					if step < 40 {
						t.Errorf("there were only %d steps", step)
					}
					return
				}
			}
		})
	}
}

func dieReceiving(t *testing.T, join pairingtest.Join, path []string, step int64) (done bool) {
	t.Helper()
	t.Run(fmt.Sprintf("step %d", step), func(t *testing.T) {
		a, b := join(t, remote.FilesCapability)
		laptop, desk := newPC(t, a, "desk"), newPC(t, b, "laptop")
		laptop.Close()
		desk.Close()
		var up atomic.Bool
		laptop.live(&up, 0)
		first := desk.live(&up, step)
		sent, err := laptop.Send("desk", path)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			laptop.await(sent.ID)
		}()
		select {
		case <-first.died:
			spoil(t, desk, sent.ID)
			desk.live(&up, 0)
			<-ended
		case <-ended:
			done = first.steps.Load() < step
		}
		if got := laptop.await(sent.ID); got.State != api.TransferDone {
			t.Errorf("it ended as %+v", got)
		}
		if shown := desk.shown(); len(shown) != 1 || shown[0] != sent.ID {
			t.Errorf("the inbox has %q", shown)
		}
		holds(t, filepath.Join(desk.home.Dir(), "inbox", sent.ID), below(crashed))
	})
	return done
}

// TestRMT_20_ASenderThatDiesAnywhere is the same for the other side.
func TestRMT_20_ASenderThatDiesAnywhere(t *testing.T) {
	t.Parallel()
	path := []string{made(t, crashed)}
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			died := 0
			for step := int64(6); step < 16; step++ { // before, Send itself has not answered
				a, b := join(t, remote.FilesCapability)
				laptop, desk := newPC(t, a, "desk"), newPC(t, b, "laptop")
				laptop.Close()
				desk.Close()
				var up atomic.Bool
				first := laptop.live(&up, step)
				desk.live(&up, 0)
				sent, err := laptop.Send("desk", path)
				if err != nil {
					t.Fatal(err)
				}
				<-first.died
				died++
				laptop.live(&up, 0)
				if got := laptop.await(sent.ID); got.State != api.TransferDone {
					t.Errorf("step %d: it ended as %+v", step, got)
				}
				if shown := desk.shown(); len(shown) != 1 {
					t.Errorf("step %d: the inbox has %q", step, shown)
				}
				holds(t, filepath.Join(desk.home.Dir(), "inbox", sent.ID), below(crashed))
				first.bury()
			}
			if died != 10 {
				t.Errorf("it died %d times", died)
			}
		})
	}
}

// TestRMT_20_EachStepOfTheDiskMayFail: a refusal of the disk is one sentence on both
// sides, and nothing half-made is shown.
func TestRMT_20_EachStepOfTheDiskMayFail(t *testing.T) {
	t.Parallel()
	path := []string{made(t, crashed)}
	a, b := pairingtest.InMemory(t, remote.FilesCapability)
	laptop, desk := newPC(t, a, "desk"), newPC(t, b, "laptop")
	for fails := int64(1); ; fails++ {
		var steps atomic.Int64
		desk.Close()
		desk.start(disk.Files{Before: func(step disk.Step, path string) error {
			if steps.Add(1) == fails {
				return &os.PathError{Op: string(step), Path: path, Err: syscall.ENOSPC}
			}
			return nil
		}}, quick)
		before := len(desk.shown())
		sent, err := laptop.Send("desk", path)
		if err != nil {
			t.Fatal(err)
		}
		ended := laptop.await(sent.ID)
		shown := len(desk.shown()) - before
		switch {
		case ended.State == api.TransferDone && shown == 1:
			holds(t, filepath.Join(desk.home.Dir(), "inbox", sent.ID), below(crashed))
		case shown == 0:
			failed(t, ended, bridge.Storage, "the disk is full")
		default:
			t.Errorf("step %d: %d are shown, and it ended as %+v", fails, shown, ended)
		}
		if entries, _ := os.ReadDir(filepath.Join(desk.home.Dir(), "network", "incoming")); len(entries) != 0 && ended.State == api.TransferFailed {
			t.Errorf("step %d leaves %d folders", fails, len(entries))
		}
		if steps.Load() < fails {
			if fails < 30 {
				t.Errorf("there were only %d steps", fails)
			}
			return
		}
	}
}

// TestRMT_20_WhateverHappensItArrivesOnce cuts the link, loses and repeats frames and
// restarts both programs at random, and then lets things be.
func TestRMT_20_WhateverHappensItArrivesOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		content := map[string][]byte{}
		for i := range rapid.IntRange(1, 8).Draw(rt, "files") {
			size := rapid.OneOf(rapid.IntRange(0, 600<<10), rapid.SampledFrom([]int{0, 1, 256 << 10, 512 << 10})).Draw(rt, "size")
			content[fmt.Sprintf("%d/f%d", i%3, i)] = noise(size)
		}
		events := rapid.MapOfN(rapid.IntRange(1, 40), rapid.SampledFrom([]string{"lose", "repeat", "cut", "sender", "receiver", "crash"}), 0, 6).Draw(rt, "events")
		join := rapid.SampledFrom([]pairingtest.Join{pairingtest.Linked, pairingtest.InMemory}).Draw(rt, "transport")
		t.Run("one", func(t *testing.T) { arrivesOnce(t, join, content, events) })
		if t.Failed() {
			rt.Fatalf("with %v", events)
		}
	})
}

func arrivesOnce(t *testing.T, join pairingtest.Join, content map[string][]byte, events map[int]string) {
	a, b := join(t, remote.FilesCapability)
	laptop, desk := newPC(t, a, "desk"), newPC(t, b, "laptop")
	laptop.Close()
	desk.Close()
	var down atomic.Bool
	var frames atomic.Int64
	happens := make(chan string, len(events))
	// Each program is watched anew; what happens to frames happens on both sides.
	watch := func(p *pc, item *program) {
		p.end.Serve(func(from remote.PC, frame remote.Frame) {
			event := events[int(frames.Add(1))]
			if event != "" {
				happens <- event
			}
			if item.wire.isDown() || event == "lose" {
				return
			}
			item.Take(from, frame)
			if event == "repeat" {
				item.Take(from, frame)
			}
		})
	}
	sender, receiver := laptop.live(&down, 0), desk.live(&down, 0)
	watch(laptop, sender)
	watch(desk, receiver)
	sent, err := laptop.Send("desk", []string{made(t, content)})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(generous)
	for ended := false; !ended; {
		select {
		case event := <-happens:
			switch event {
			case "cut":
				down.Store(true)
				down.Store(false)
			case "sender":
				sender.bury()
				sender = laptop.live(&down, 0)
				watch(laptop, sender)
			case "receiver":
				receiver.bury()
				receiver = desk.live(&down, 0)
				watch(desk, receiver)
			case "crash":
				receiver.wire.dead.Store(true)
				receiver.bury()
				spoil(t, desk, sent.ID)
				receiver = desk.live(&down, 0)
				watch(desk, receiver)
			}
		case <-deadline:
			t.Fatal("it never ended")
		case <-time.After(time.Millisecond):
			view, err := laptop.Await(t.Context(), sent.ID, -1)
			if err != nil {
				t.Fatal(err)
			}
			ended = view.HasEnded()
		}
	}
	if got := laptop.await(sent.ID); got.State != api.TransferDone {
		t.Errorf("it ended as %+v", got)
	}
	if shown := desk.shown(); len(shown) != 1 {
		t.Errorf("the inbox has %q", shown)
	}
	holds(t, filepath.Join(desk.home.Dir(), "inbox", sent.ID), below(content))
}
