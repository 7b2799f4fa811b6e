//go:build !windows

package disk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/testing/testkit"
)

const otherUser = 65534

// ofAnother makes a file of another user's, which everybody may write.
func ofAnother(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(dir, "settings.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o666), os.Chown(path, otherUser, otherUser)); err != nil { //nolint:gosec // it is to be written
		t.Fatal(err)
	}
	return path
}

func TestRWM_10_NoFileChangesItsOwner(t *testing.T) {
	for name, write := range map[string]func(path, dir string) error{
		"WriteAtomic": func(path, _ string) error { return WriteAtomic(path, []byte("new"), PrivateFile) },
		"Overwrite":   func(path, dir string) error { return Files{}.Overwrite(path, []byte("new"), PrivateFile, dir) },
		"Replace": func(path, dir string) error {
			pending := filepath.Join(dir, "pending")
			if err := os.WriteFile(pending, []byte("new"), 0o600); err != nil {
				return err
			}
			return errors.Join(Files{}.Replace(pending, path), os.Remove(pending))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := ofAnother(t, dir)
			other := (*OtherOwnerError)(nil)
			err := write(path, dir)
			if !errors.As(err, &other) || !strings.Contains(err.Error(), path) || !strings.Contains(WhyNotWritten(err), "not to you") {
				t.Errorf("it fails with %v", err)
			}
			checkOfAnother(t, path, "old")
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

func checkOfAnother(t *testing.T, path, want string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != want || OwnerOf(info) != otherUser || info.Mode().Perm() != 0o666 {
		t.Errorf("the file is %q of uid %d, mode %o", data, OwnerOf(info), info.Mode().Perm())
	}
}

// A user who may write another one's file changes its content alone.
func TestRWM_10_AFileOfAnotherUsersIsWrittenInPlace(t *testing.T) {
	const marker = "BRIDGE_TEST_FILE_OF_ANOTHER"
	if path := os.Getenv(marker); path != "" {
		if err := (Files{}).Overwrite(path, []byte("new"), PrivateFile, filepath.Dir(path)); err != nil {
			t.Error(err)
		}
		return
	}
	dir, err := os.MkdirTemp("/tmp", "own") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, program := ofAnother(t, dir), filepath.Join(dir, "test")
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(testkit.WriteProgram(program, data, 0o755), os.Chmod(dir, 0o777)); err != nil { //nolint:gosec // another user runs it
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$")
	cmd.Env, cmd.Dir = append(os.Environ(), marker+"="+path), dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	checkOfAnother(t, path, "new")
}
