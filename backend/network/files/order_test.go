package files

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/core/remote"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// TestRMT_20_ACommandOvertakesALargeFile looks at the order in which frames arrive,
// not at time: a command that is sent while the receiver takes nothing waits for no
// more than the chunks that were under way before it.
func TestRMT_20_ACommandOvertakesALargeFile(t *testing.T) {
	t.Parallel()
	const chunks = 64
	content := map[string][]byte{"large": noise(chunks * remote.ChunkBytes)}
	each(t, func(t *testing.T, laptop, desk *pc) {
		var mu sync.Mutex
		var order []string
		held, first := make(chan struct{}), make(chan struct{})
		var once sync.Once
		command := make(chan struct{})
		desk.end.Serve(func(from remote.PC, frame remote.Frame) {
			if frame.Type == "command" {
				mu.Lock()
				order = append(order, "command")
				mu.Unlock()
				close(command)
				return
			}
			if len(frame.Body) > 0 {
				once.Do(func() { close(first) })
				<-held
				mu.Lock()
				order = append(order, "chunk")
				mu.Unlock()
			}
			desk.Take(from, frame)
		})
		sent, err := laptop.Send("desk", []string{made(t, content)})
		if err != nil {
			t.Fatal(err)
		}
		<-first
		told := make(chan error, 1)
		go func() {
			told <- laptop.end.Send(t.Context(), desk.end.Self.ID, remote.Frame{Type: "command"})
		}()
		if err := <-told; err != nil { // it does not wait for the chunks, either
			t.Fatal(err)
		}
		close(held)
		<-command
		if ended := laptop.await(sent.ID); ended.State != api.TransferDone {
			t.Fatalf("it ended as %+v", ended)
		}
		mu.Lock()
		defer mu.Unlock()
		for i, what := range order {
			if what == "command" && i > 8 {
				t.Errorf("the command came after %d chunks of %d", i, len(order)-1)
			}
		}
	})
}

// TestRMT_20_ASlowDiskDelaysNoCommand: what is written is not waited for by what else
// comes from the same PC.
func TestRMT_20_ASlowDiskDelaysNoCommand(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{"large": noise(20 * remote.ChunkBytes)}
	each(t, func(t *testing.T, laptop, desk *pc) {
		held, writes := make(chan struct{}), make(chan struct{}, 100)
		desk.Close()
		desk.start(disk.Files{Before: func(step disk.Step, path string) error {
			if step == disk.StepWrite && filepath.Base(path) == "large" {
				writes <- struct{}{}
				<-held
			}
			return nil
		}}, quick)
		command := make(chan struct{})
		desk.end.Serve(func(from remote.PC, frame remote.Frame) {
			if frame.Type == "command" {
				close(command)
				return
			}
			desk.Take(from, frame)
		})
		sent, err := laptop.Send("desk", []string{made(t, content)})
		if err != nil {
			t.Fatal(err)
		}
		<-writes
		if err := laptop.end.Send(t.Context(), desk.end.Self.ID, remote.Frame{Type: "command"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-command:
		case <-time.After(generous):
			t.Error("the command waits for the disk")
		}
		close(held)
		if ended := laptop.await(sent.ID); ended.State != api.TransferDone {
			t.Errorf("it ended as %+v", ended)
		}
	})
}

// TestRMT_20_AtMostAWindowIsUnderWay counts what a receiver that acknowledges nothing
// is sent.
func TestRMT_20_AtMostAWindowIsUnderWay(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{"large": noise(40 * remote.ChunkBytes)}
	each(t, func(t *testing.T, laptop, desk *pc) {
		came, offers := 0, make(chan int, 100)
		desk.tap(func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool) {
			switch fileFrame.Kind {
			case remote.OfferFiles:
				offers <- came // what came since the last one
				came = 0
			case remote.FileChunk:
				came++
				return frame, false
			case remote.AcceptFiles, remote.FileAck, remote.FilesDone, remote.RefuseFiles:
			}
			return frame, true
		})
		sent, err := laptop.Send("desk", []string{made(t, content)})
		if err != nil {
			t.Fatal(err)
		}
		<-offers
		if got := <-offers; got != 8 { // it has waited in vain and offers again
			t.Errorf("%d chunks came before the first was acknowledged", got)
		}
		if _, err := laptop.Cancel(sent.ID); err != nil {
			t.Error(err)
		}
		if came := desk.arrived(sent.ID); came.State != api.TransferFailed {
			t.Errorf("there it ended as %+v", came)
		}
		desk.nothingLeft()
		if _, err := os.Stat(filepath.Join(laptop.home.Dir(), "inbox")); err == nil {
			t.Error("the sender has an inbox")
		}
	})
}

// TestHUB_03_ATransferEndsWithItsPC: on either side at once, in the middle of it, and what
// came of it is gone.
func TestHUB_03_ATransferEndsWithItsPC(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{"large": noise(40 * remote.ChunkBytes)}
	for _, sender := range []bool{true, false} {
		each(t, func(t *testing.T, laptop, desk *pc) {
			came, middle := 0, make(chan struct{})
			desk.tap(func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool) {
				if fileFrame.Kind == remote.FileChunk {
					if came++; came == 5 {
						close(middle)
					}
				}
				return frame, fileFrame.Kind != remote.FileChunk || came < 5
			})
			sent, err := laptop.Send("desk", []string{made(t, content)})
			if err != nil {
				t.Fatal(err)
			}
			<-middle
			who, other := desk, laptop.end.Self.ID
			if sender {
				who, other = laptop, desk.end.Self.ID
			}
			who.Forsake(func(string) bool { return true })
			if now, err := who.Await(t.Context(), sent.ID, 0); err != nil || now.HasEnded() {
				t.Fatalf("with a PC that is known it stands as %+v, %v", now, err)
			}
			who.Forsake(func(pc string) bool { return pc != other })
			if ended := who.await(sent.ID); ended.State != api.TransferFailed || !strings.Contains(ended.Error, "is neither paired with this PC nor in its team any more") {
				t.Errorf("it ended as %+v", ended)
			}
			desk.arrived(sent.ID)
			desk.nothingLeft()
		})
	}
}
