package sandbox

import (
	"errors"
	"syscall"
	"testing"
)

// A Landlock before its version 3 lets a job that may only read empty every file.
func TestJOB_14_AnOlderLandlockIsNoFloor(t *testing.T) {
	for abi, ok := range map[int]bool{0: false, 1: false, 2: false, 3: true, 6: true} {
		err := enough(abi, nil)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrUnavailable) {
			t.Errorf("version %d: %v", abi, err)
		}
	}
	if err := enough(0, syscall.ENOSYS); !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.ENOSYS) {
		t.Errorf("none: %v", err)
	}
}
