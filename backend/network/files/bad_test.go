package files

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

func TestRMT_20_ThePolicyIsAskedAnewEachTime(t *testing.T) {
	t.Parallel()
	path := []string{made(t, map[string][]byte{"a": []byte("a")})}
	each(t, func(t *testing.T, laptop, desk *pc) {
		send := func() api.Transfer {
			t.Helper()
			sent, err := laptop.Send("desk", path)
			if err != nil {
				t.Fatal(err)
			}
			return laptop.await(sent.ID)
		}
		desk.allow(func(p *remote.Policy) { p.Files.AllowPeers = nil })
		failed(t, send(), bridge.Denied, "desk refused it: files from laptop are not allowed here (network.files.allowPeers)")
		desk.allow(func(p *remote.Policy) { p.Files.AllowPeers = []string{"laptop"} })
		if got := send(); got.State != api.TransferDone {
			t.Errorf("allowed: %+v", got)
		}
		desk.allow(func(p *remote.Policy) { p.Enabled = false })
		failed(t, send(), bridge.Denied, "links to other PCs are off here")
		desk.allow(func(p *remote.Policy) { p.Enabled = true })
		desk.mu.Lock()
		desk.broken = errors.New("config.json is damaged")
		desk.mu.Unlock()
		failed(t, send(), bridge.Denied, "the settings of this PC cannot be read: nothing is allowed")
		if shown := desk.shown(); len(shown) != 1 {
			t.Errorf("the inbox has %q", shown)
		}
	})
}

func TestRMT_20_WhatIsTakenBackInTheMiddleIsNotShown(t *testing.T) {
	t.Parallel()
	path := []string{made(t, map[string][]byte{"large": noise(3 << 20)})}
	each(t, func(t *testing.T, laptop, desk *pc) {
		desk.tap(func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool) {
			if fileFrame.Kind == remote.FileChunk && fileFrame.At > 1<<20 {
				desk.allow(func(p *remote.Policy) { p.Files.AllowPeers = nil })
			}
			return frame, true
		})
		sent, err := laptop.Send("desk", path)
		if err != nil {
			t.Fatal(err)
		}
		failed(t, laptop.await(sent.ID), bridge.Denied, "not allowed here")
		failed(t, desk.arrived(sent.ID), bridge.Denied, "not allowed here")
		desk.nothingLeft()
	})
}

func TestRMT_20_LimitsOfTheReceiver(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{"a": noise(1000), "b": noise(1000)}
	path := []string{made(t, content)}
	each(t, func(t *testing.T, laptop, desk *pc) {
		for _, tt := range []struct {
			limits remote.Files
			says   string
		}{
			{remote.Files{MaxEntries: 1}, "2 files are too many: at most 1"},
			{remote.Files{MaxBytes: 1999}, "are taken at a time (network.files.maxBytes)"},
			{remote.Files{MaxBytes: 2000, MaxEntries: 2, AtOnce: 1}, ""},
		} {
			desk.allow(func(p *remote.Policy) {
				tt.limits.AllowPeers = []string{"laptop"}
				p.Files = tt.limits
			})
			sent, err := laptop.Send("desk", path)
			if err != nil {
				t.Fatal(err)
			}
			ended := laptop.await(sent.ID)
			if tt.says == "" {
				if ended.State != api.TransferDone {
					t.Errorf("within the limits: %+v", ended)
				}
				continue
			}
			failed(t, ended, bridge.TooLarge, tt.says)
		}
	})
}

// TestRMT_20_FourComeInAtOnce: a fifth waits until there is room, and comes then.
func TestRMT_20_FourComeInAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, laptop, desk *pc) {
		// By hand, for a sender of ours has no more than four at a time itself.
		offer := func(id string) remote.FileFrame {
			data, err := remote.Manifest{Files: []remote.FileEntry{{Path: "a", Bytes: 1, SHA256: strings.Repeat("0", 64)}}}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var m remote.Manifest
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatal(err)
			}
			return desk.consider(laptop.end.Self, id, m.Offer(data))
		}
		const id = "5f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1a"
		for _, last := range "0123" {
			if got := offer(id + string(last)); got.Kind != remote.AcceptFiles {
				t.Fatalf("offer %c: %+v", last, got.Error)
			}
		}
		if got := offer(id + "0"); got.Kind != remote.AcceptFiles {
			t.Errorf("the first once more: %+v", got.Error)
		}
		if got := offer(id + "4"); got.Kind != remote.RefuseFiles || got.Error.Code != bridge.Busy {
			t.Errorf("the fifth: %+v", got)
		}
		laptopSends, err := laptop.Send("desk", []string{made(t, map[string][]byte{"a": []byte("a")})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := desk.Cancel(id + "0"); err != nil {
			t.Fatal(err)
		}
		if ended := laptop.await(laptopSends.ID); ended.State != api.TransferDone {
			t.Errorf("once there was room: %+v", ended)
		}
	})
}

func TestRMT_20_ASourceThatChangesIsNotSent(t *testing.T) {
	t.Parallel()
	const size = 600 << 10 // three chunks
	for name, change := range map[string]func(path string) error{
		"longer":  func(path string) error { return os.WriteFile(path, noise(size+1), 0o600) },
		"shorter": func(path string) error { return os.Truncate(path, size/3) },
		"other bytes at its end": func(path string) error {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteAt([]byte("other"), size-5)
			return errors.Join(err, file.Close())
		},
		"gone": os.Remove,
		"a link instead": func(path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, laptop, desk *pc) {
				folder := made(t, map[string][]byte{"a-first": noise(300 << 10), "large": noise(size)})
				desk.tap(func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool) {
					if fileFrame.Kind == remote.OfferFiles { // its checksums are known, and nothing was sent
						if err := change(filepath.Join(folder, "large")); err != nil && !os.IsNotExist(err) {
							t.Error(err)
						}
					}
					return frame, true
				})
				sent, err := laptop.Send("desk", []string{folder})
				if err != nil {
					t.Fatal(err)
				}
				says := "changed while it was sent: send it again"
				if name == "gone" {
					says = "cannot be sent any more"
				}
				failed(t, laptop.await(sent.ID), bridge.Conflict, says)
				failed(t, desk.arrived(sent.ID), bridge.Conflict, says)
				desk.nothingLeft()
			})
		})
	}
}

// TestRMT_20_WrongBytesAreNotShown: a chunk that is not what was promised, in the
// manifest, in the middle and at the end.
func TestRMT_20_WrongBytesAreNotShown(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{"a": noise(1 << 20), "b": noise(3)}
	path := []string{made(t, content)}
	for name, where := range map[string]struct {
		from, to int64
		says     string
	}{
		"manifest":  {0, 1, "the list of files did not arrive as it was sent: its checksum is wrong"},
		"in a file": {1 << 19, 1<<20 - 1, `"sent/a" did not arrive as it was sent: its checksum is wrong`},
		"the end":   {1 << 20, 1 << 30, `"sent/b" did not arrive as it was sent: its checksum is wrong`},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, laptop, desk *pc) {
				desk.tap(func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool) {
					if fileFrame.Kind == remote.FileChunk && fileFrame.At >= where.from && fileFrame.At < where.to {
						body := append([]byte{}, frame.Body...)
						body[len(body)-1] ^= 1
						if name == "manifest" {
							body[0] ^= 1
						}
						frame.Body = body
					}
					return frame, true
				})
				sent, err := laptop.Send("desk", path)
				if err != nil {
					t.Fatal(err)
				}
				failed(t, laptop.await(sent.ID), bridge.Conflict, where.says)
				failed(t, desk.arrived(sent.ID), bridge.Conflict, where.says)
				desk.nothingLeft()
			})
		})
	}
}

func TestRMT_20_AFullDiskIsSaidAndLeavesNothing(t *testing.T) {
	t.Parallel()
	path := []string{made(t, map[string][]byte{"large": noise(3 << 20)})}
	each(t, func(t *testing.T, laptop, desk *pc) {
		desk.Close()
		written := 0
		desk.start(disk.Files{Before: func(step disk.Step, path string) error {
			if step == disk.StepWrite && filepath.Base(path) == "large" {
				if written++; written > 5 {
					return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
				}
			}
			return nil
		}}, quick)
		sent, err := laptop.Send("desk", path)
		if err != nil {
			t.Fatal(err)
		}
		failed(t, laptop.await(sent.ID), bridge.Storage, "desk refused it: what was sent cannot be written: the disk is full")
		desk.arrived(sent.ID)
		desk.nothingLeft()
		free, err := disk.Free(desk.home.Dir())
		if err != nil || free <= 0 {
			t.Fatalf("free space: %d, %v", free, err)
		}
		offer := remote.FileOffer{Entries: 1, Bytes: free, ManifestBytes: 1, SHA256: strings.Repeat("0", 64)}
		desk.allow(func(p *remote.Policy) { p.Files.MaxBytes = free })
		got := desk.consider(laptop.end.Self, "5f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1aa", offer)
		if got.Error == nil || got.Error.Code != bridge.Storage || !strings.Contains(got.Error.Message, "not enough room") {
			t.Errorf("more than the disk has room for: %+v", got)
		}
		desk.nothingLeft()
	})
}

// TestRMT_20_AHostileSender tries what no sender of ours does.
func TestRMT_20_AHostileSender(t *testing.T) {
	t.Parallel()
	const id = "5f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1aa"
	each(t, func(t *testing.T, laptop, desk *pc) {
		heard := make(chan remote.FileFrame, 1000)
		laptop.end.Serve(func(_ remote.PC, frame remote.Frame) {
			fileFrame, err := remote.ParseFileFrame(frame.Payload, len(frame.Body))
			if err != nil {
				t.Error(err)
			}
			heard <- fileFrame
		})
		send := func(frame remote.FileFrame, body []byte) {
			t.Helper()
			payload, err := frame.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := laptop.end.Send(t.Context(), desk.end.Self.ID, remote.Frame{Type: remote.FilesFrameType, Payload: payload, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(says string) {
			t.Helper()
			deadline := time.After(generous)
			for {
				select {
				case frame := <-heard:
					if frame.Kind != remote.RefuseFiles {
						continue
					}
					if !strings.Contains(frame.Error.Message, says) {
						t.Errorf("refused with %q, not %q", frame.Error.Message, says)
					}
					return
				case <-deadline:
					t.Fatalf("nothing was refused with %q", says)
				}
			}
		}
		// What belongs to nothing is passed over.
		send(remote.FileFrame{Kind: remote.FileChunk, ID: id}, []byte("x"))
		send(remote.FileFrame{Kind: remote.FilesDone, ID: id}, nil)
		send(remote.FileFrame{Kind: remote.RefuseFiles, ID: id, Error: &bridge.Error{Code: bridge.Denied, Message: "no"}}, nil)

		// Names that lead out of the inbox, by a manifest that ours cannot make.
		manifest := []byte(`{"files":[{"path":"../../config.json","bytes":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`)
		offer := remote.Manifest{Files: []remote.FileEntry{{Path: "../../config.json", Bytes: 1}}}.Offer(manifest)
		send(remote.FileFrame{Kind: remote.OfferFiles, ID: id, Offer: &offer}, nil)
		if frame := <-heard; frame.Kind != remote.AcceptFiles || frame.At != 0 {
			t.Fatalf("the offer: %+v", frame)
		}
		send(remote.FileFrame{Kind: remote.FileChunk, ID: id}, append(manifest, 'x'))
		refused("it is no path below a folder")
		desk.nothingLeft()

		// The same transfer once more stays what it is.
		send(remote.FileFrame{Kind: remote.OfferFiles, ID: id, Offer: &offer}, nil)
		refused("it is no path below a folder")
		other := offer
		other.Bytes++
		send(remote.FileFrame{Kind: remote.OfferFiles, ID: id, Offer: &other}, nil)
		refused("another transfer has this id")

		// More than was offered.
		good, err := remote.Manifest{Files: []remote.FileEntry{{Path: "a", Bytes: 1, SHA256: strings.Repeat("0", 64)}}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		goodOffer := remote.Manifest{Files: []remote.FileEntry{{Path: "a", Bytes: 1}}}.Offer(good)
		const second = "6f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1aa"
		send(remote.FileFrame{Kind: remote.OfferFiles, ID: second, Offer: &goodOffer}, nil)
		if frame := <-heard; frame.Kind != remote.AcceptFiles {
			t.Fatalf("the second offer: %+v", frame)
		}
		send(remote.FileFrame{Kind: remote.FileChunk, ID: second}, append(append([]byte{}, good...), "xyz"...))
		refused("checksum is wrong")

		// Chunks without end, none of which is waited for.
		desk.Close()
		held, touched := make(chan struct{}), make(chan struct{})
		var once sync.Once
		desk.start(disk.Files{Before: func(disk.Step, string) error {
			once.Do(func() { close(touched) })
			<-held
			return nil
		}}, quick)
		const third = "7f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1aa"
		send(remote.FileFrame{Kind: remote.OfferFiles, ID: third, Offer: &goodOffer}, nil)
		select { // it has room for the transfer, and writes that down
		case <-touched:
		case <-time.After(generous):
			t.Fatal("the third offer is not taken")
		}
		for range 100 {
			send(remote.FileFrame{Kind: remote.FileChunk, ID: third, At: 1 << 40}, []byte("x"))
			if t.Context().Err() != nil {
				return
			}
		}
		// What comes from one PC is taken in its order: with this answer the chunks were, too.
		send(remote.FileFrame{Kind: remote.OfferFiles, ID: second, Offer: &goodOffer}, nil)
		refused("checksum is wrong")
		close(held)
		refused("it was sent without waiting for what was taken")
		desk.nothingLeft()
	})
}

func TestRMT_20_APCThatKnowsNoFilesIsNamed(t *testing.T) {
	t.Parallel()
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			a, b := join(t)
			laptop := newPC(t, a, "desk")
			newPC(t, b, "laptop")
			_, err := laptop.Send("desk", []string{made(t, map[string][]byte{"a": nil})})
			if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "desk runs Bridge 1.0, which does not know file-stream-v1: update Bridge there") {
				t.Errorf("it says %v", err)
			}
		})
	}
}
