//go:build amd64 || arm64

package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMSG_04_STO_04_AFullDiskUnderABroker fills a real file system of its own.
// (A read-only remount is refused by the system while a broker writes; a disk
// that turns read-only by itself is among the plans.)
func TestMSG_04_STO_04_AFullDiskUnderABroker(t *testing.T) {
	dir := scratch(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Skipf("NOT PROVEN: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	home := filepath.Join(dir, "h")
	b := serve(t, home, func(call) verdict { return verdict{} })
	acknowledged := map[string]int{}
	var refused []string
	for k := 0; len(refused) < 5; k++ {
		if id := fmt.Sprintf("m%04d", k); b.send(id) {
			acknowledged[id]++
		} else {
			refused = append(refused, id)
		}
	}
	if len(acknowledged) < 50 {
		t.Errorf("only %d messages fitted", len(acknowledged))
	}
	ran := command(t, "doctor", "--backup", "--home", home)
	if ran.code != 1 || !strings.Contains(ran.text, "disk is full") && !strings.Contains(ran.text, "no space left on device") || strings.Count(ran.text, "\n") != 1 {
		t.Errorf("a backup on the full disk: exit %d, %s", ran.code, ran.text)
	}
	if looked := command(t, "doctor", "--home", home); looked.code != 0 {
		t.Errorf("the doctor on the full disk: exit %d, %s", looked.code, looked.text)
	}

	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	for _, id := range refused {
		if !b.send(id) {
			t.Errorf("%s is refused although there is room", id)
		}
		acknowledged[id]++
	}
	for id, times := range b.inbox() {
		if times != 1 || acknowledged[id] != 1 {
			t.Errorf("%s arrived %d times", id, times)
		}
		delete(acknowledged, id)
	}
	if len(acknowledged) > 0 {
		t.Errorf("never arrived: %d", len(acknowledged))
	}
	if ran := command(t, "doctor", "--backup", "--home", home); ran.code != 0 {
		t.Errorf("a backup with room again: %s", ran.text)
	}
	b.terminate()
	sound(t, home)
}
