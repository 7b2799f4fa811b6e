package files

import (
	"path/filepath"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// TestRMT_20_NothingIsNotedBeforeItIsOnTheDisk looks at the order of the steps: what is
// noted as durable, or shown, was synced before, with the folder that has its name.
func TestRMT_20_NothingIsNotedBeforeItIsOnTheDisk(t *testing.T) {
	t.Parallel()
	a, b := pairingtest.InMemory(t, remote.FilesCapability)
	laptop, desk := newPC(t, a, "desk"), newPC(t, b, "laptop")
	desk.Close()
	unsynced := map[string]bool{} // files and folders whose last change may be lost
	noted, shown := 0, 0
	desk.start(disk.Files{Before: func(step disk.Step, path string) error {
		inContent := filepath.Base(path) != progressFile && filepath.Base(path) != manifestFile
		switch step {
		case disk.StepCreate:
			if inContent {
				unsynced[filepath.Dir(path)] = true
			}
		case disk.StepWrite:
			if filepath.Base(path) == progressFile {
				noted++
				for lost := range unsynced {
					if filepath.Base(filepath.Dir(filepath.Dir(lost))) != "network" { // a record is no part of it
						t.Errorf("it is noted that all is on the disk, and %s may not be", lost)
					}
				}
			} else if inContent {
				unsynced[path] = true
			}
		case disk.StepSync, disk.StepSyncDir:
			delete(unsynced, path)
		case disk.StepPublish:
			if filepath.Base(filepath.Dir(path)) == "inbox" {
				shown++
				for lost := range unsynced {
					if filepath.Base(filepath.Dir(filepath.Dir(lost))) != "network" {
						t.Errorf("it is shown, and %s may not be on the disk", lost)
					}
				}
			}
		case disk.StepRemove:
		}
		return nil
	}}, quick)
	sent, err := laptop.Send("desk", []string{made(t, crashed)})
	if err != nil {
		t.Fatal(err)
	}
	if ended := laptop.await(sent.ID); ended.State != api.TransferDone {
		t.Fatalf("it ended as %+v", ended)
	}
	desk.arrived(sent.ID)
	if noted < 2 || shown != 1 {
		t.Errorf("it was noted %d times and shown %d times", noted, shown)
	}
	// Whoever else knows the id learns nothing of it, and changes nothing.
	desk.Transfers.mu.Lock()
	offer := desk.records[sent.ID].Offer
	desk.Transfers.mu.Unlock()
	desk.allow(func(p *remote.Policy) { p.Files.AllowPeers = append(p.Files.AllowPeers, "third") })
	got := desk.consider(remote.PC{ID: "id-of-third", Name: "third"}, sent.ID, offer)
	if got.Kind != remote.RefuseFiles || got.Error.Code != bridge.Conflict {
		t.Errorf("another PC offers the same id: %+v", got)
	}
}

// TestRMT_20_WhatIsShownIsAllowedThen: a transfer that is smaller than what is noted at
// a time is asked about once more, before it is shown.
func TestRMT_20_WhatIsShownIsAllowedThen(t *testing.T) {
	path := []string{made(t, map[string][]byte{"small": noise(1000)})}
	each(t, func(t *testing.T, laptop, desk *pc) {
		desk.tap(func(frame remote.Frame, fileFrame remote.FileFrame) (remote.Frame, bool) {
			if fileFrame.Kind == remote.FileChunk {
				desk.allow(func(p *remote.Policy) { p.Files.AllowPeers = nil })
			}
			return frame, true
		})
		sent, err := laptop.Send("desk", path)
		if err != nil {
			t.Fatal(err)
		}
		failed(t, laptop.await(sent.ID), bridge.Denied, "not allowed here")
		desk.arrived(sent.ID)
		desk.nothingLeft()
	})
}
