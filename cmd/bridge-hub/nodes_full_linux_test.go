package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"bridge/backend/core/remote"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/server"
	"bridge/backend/network/hub/subject"
	"bridge/backend/testing/testkit"
)

// smallDisk is a file system of its own with a node's home on it.
func smallDisk(t *testing.T, home string) string {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=192m,mode=700"); err != nil {
		t.Skipf("NOT TRIED: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	moved := filepath.Join(disk, "hub")
	if err := os.CopyFS(moved, os.DirFS(home)); err != nil {
		t.Fatal(err)
	}
	return moved
}

// fill takes all that is left of the disk that a home is on.
func fill(t *testing.T, home string) (ballast string) {
	t.Helper()
	ballast = filepath.Join(filepath.Dir(home), "ballast")
	if err := os.WriteFile(ballast, make([]byte, 192<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return ballast
}

func (h *hub) log() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.home, "logs", "hub.log"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// leader is which node leads the stream of messages, from 0 on: the one that said so last.
func (n *nodes) leader() (node int) {
	n.t.Helper()
	last := ""
	for i, h := range n.hubs {
		for line := range strings.Lines(h.log()) {
			if strings.Contains(line, "new stream leader for 'crew > "+subject.MessageStream("crew")+"'") && line > last {
				node, last = i, line // it begins with the time
			}
		}
	}
	return node
}

// keeps has messages lie at the hub for a PC that takes none.
func (f *traffic) keeps(js jetstream.JetStream, from, to *pc, what string) {
	f.t.Helper()
	at := subject.Subject{Team: "crew", From: from.identity.ID, To: to.identity.ID, Sort: subject.Message}.String()
	ctx, cancel := context.WithTimeout(f.t.Context(), testkit.Patience)
	defer cancel()
	for i := range kept {
		id := fmt.Sprintf("%s %d", what, i)
		for {
			once, end := context.WithTimeout(ctx, 2*time.Second)
			_, err := js.PublishMsg(once, &nats.Msg{Subject: at, Data: append([]byte(id+" "), bytes.Repeat([]byte("x"), 4096)...)}, jetstream.WithMsgID(id))
			end()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				f.t.Fatalf("%s is not acknowledged: %v", id, err)
			}
		}
	}
}

// kept is how many messages lie at the hub at once for a PC that takes none.
const kept = 30

// goes sees a PC say something durable to another one, at whichever node it is.
func (w *watcher) goes(to *pc) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), testkit.Patience)
	defer cancel()
	for {
		err := w.hub.Inbox.Store(ctx, to.identity.ID, remote.Frame{Type: "x"})
		if err == nil {
			return
		}
		select {
		case <-w.changed:
		case <-time.After(100 * time.Millisecond): //nolint:forbidigo // what else it waits for tells nobody
		case <-ctx.Done():
			w.t.Fatalf("it can say nothing: %v, %+v", err, w.hub.State())
		}
	}
}

// TestHUB_07_ANodeWhoseDiskIsFull: what is acknowledged meanwhile, and was before, is
// there; the team goes on by the other two; and the node comes back whole by itself when
// there is room, so that any other one can go then.
func TestHUB_07_ANodeWhoseDiskIsFull(t *testing.T) {
	testkit.Long(t, "it takes a minute")
	if !hubtest.OnANetworkOfItsOwn(t) {
		return
	}
	n := startNodes(t, func(home string) string { return smallDisk(t, home) })
	anna, bert, carl, dora := n.hubs[0].join("anna"), n.hubs[1].join("bert"), n.hubs[2].join("carl"), n.hubs[0].join("dora")
	f := n.traffic(anna, bert)
	w := carl.watch(t)
	_, js := anna.connect(t)
	rounds := []string{"leads", "has the PC"}
	for _, which := range rounds {
		f.goesOn("before", 30)
		f.keeps(js, anna, dora, which+" before")
		node := n.leader()
		if at := w.at(""); which == "has the PC" {
			node = slices.IndexFunc(n.hubs[:], func(h *hub) bool { return h.more[1] == at })
		}
		n.isFull(node, func(what string) {
			f.goesOn(what, 300)
			f.keeps(js, anna, dora, which+" meanwhile")
			w.goes(dora)
		})
		// It counts again: the hub goes on by it and one of the others, both of which start
		// with nothing but what it has.
		for _, other := range []int{(node + 1) % 3, (node + 2) % 3} {
			h := n.hubs[other]
			h.kill()
			f.goesOn(h.more[1]+" is killed", 30)
			if err := os.RemoveAll(filepath.Join(h.home, "store")); err != nil {
				t.Fatal(err)
			}
			n.start(other)
			n.await(other)
		}
	}
	f.stop()
	f.sending.Wait()
	f.until("all that was acknowledged arrives", func() bool { return f.missing() == 0 })
	_, inbox := dora.connect(t)
	lay := map[string]bool{}
	for text := range dora.readAll(t, inbox) {
		lay[strings.TrimRight(text, " x")] = true
	}
	for _, which := range rounds {
		for i := range 2 * kept {
			if id := fmt.Sprintf("%s %s %d", which, []string{"before", "meanwhile"}[i/kept], i%kept); !lay[id] {
				t.Errorf("%q was acknowledged and is lost", id)
			}
		}
	}
	f.mu.Lock()
	t.Logf("acknowledged %d and %d that lay there, lost %d, stored more than once %d", len(f.sent), len(rounds)*2*kept, f.missing(), f.held)
	f.mu.Unlock()
	for i := range n.hubs {
		n.knows(i, "anna", "bert", "carl", "dora")
	}
}

// isFull fills the disk of a node while something goes on, sees that the node says so and
// nothing goes wrong elsewhere, and makes room again.
func (n *nodes) isFull(node int, meanwhile func(what string)) {
	n.t.Helper()
	h := n.hubs[node]
	logged := len(h.log())
	began := time.Now()
	ballast := fill(n.t, h.home)
	meanwhile("the disk of " + h.more[1] + " is full")
	without := time.Since(began)
	if !strings.Contains(h.log()[logged:], "ritical write error") {
		n.t.Errorf("the engine of %s has written all the same:\n%s", h.more[1], h.log()[logged:])
	}
	n.ask(node, func(ctx context.Context, client *server.Client) error {
		status, err := client.Status(ctx)
		if err == nil && (status.Full == 0 || !strings.Contains(status.FullWords(), "the other nodes go on without it")) {
			err = fmt.Errorf("it does not say that its disk is full: %+v", status)
		}
		return err
	})
	n.ask((node+1)%3, func(ctx context.Context, client *server.Client) error {
		status, err := client.Status(ctx)
		if err == nil && (status.Full != 0 || !strings.Contains(fmt.Sprint(status.Behind), h.more[1])) {
			err = fmt.Errorf("another one does not say that %s lacks something: %+v", h.more[1], status)
		}
		return err
	})
	began = time.Now()
	if err := os.Remove(ballast); err != nil {
		n.t.Fatal(err)
	}
	n.await(node)
	n.await((node + 1) % 3)
	n.t.Logf("%s had a full disk: 300 more after %s; with room again it was whole after %s", h.more[1], without.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}
