package testkit

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// PrivateMounts gives the test's goroutine mounts of its own, which end with the test. It
// skips the test where the system does not permit that. Goroutines and processes that the
// test starts otherwise do not see them.
func PrivateMounts(t testing.TB) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err != nil {
		t.Skipf("SKIPPED, nothing was mounted: mounts of its own need root: %v", err)
	}
}

// Bind mounts the file or folder from over the existing to, until the test ends.
func Bind(t testing.TB, from, to string, flags uintptr) {
	t.Helper()
	err := unix.Mount(from, to, "", unix.MS_BIND, "")
	if err == nil && flags != 0 {
		err = unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
	}
	if err != nil {
		t.Fatalf("mount %s at %s: %v", from, to, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}
