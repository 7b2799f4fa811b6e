package main

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A first start on a full disk says what is wrong and keeps nothing, for there was nothing;
// doctor and status do not call that healthy.
func TestDOC_07_AFullDiskAtTheFirstStartIsNamed(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=100k,mode=700"); err != nil {
		t.Skipf("NOT TRIED: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	env := []string{"BRIDGE_HOME=" + filepath.Join(disk, "h")}
	for _, step := range []struct {
		words []string
		exit  int
		says  string
	}{
		{[]string{"serve", "--port", "0"}, 1, "the disk is full. Nothing was in it yet"},
		{[]string{"doctor"}, 1, "[store-unmade]"},
		{[]string{"status"}, 4, "Storage    1 error"},
	} {
		got := runBridge(t, env, "", step.words...)
		if all := got.stdout + got.stderr; got.code != step.exit || !strings.Contains(all, step.says) || strings.Contains(all, "copy is kept") {
			t.Errorf("%s: exit code %d, want %d\n%s", step.words[0], got.code, step.exit, all)
		}
	}
}
