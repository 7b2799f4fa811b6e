package proc_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

// Hooks call the small program where a package put it, and the long form where
// there is none.
func TestMSG_11_TheProgramOfHooksIsTheOneBesideBridge(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), testkit.WriteProgram(path, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct{ name, program, beside, want string }{
		{name: "a package", program: "package/bridge", beside: "package/bridge-hook", want: "package/bridge-hook"},
		{name: "on Windows", program: "windows/bridge.exe", beside: "windows/bridge-hook.exe", want: "windows/bridge-hook.exe"},
		{name: "built for another system", program: "cross/bridge-linux-arm64", beside: "cross/bridge-hook-linux-arm64", want: "cross/bridge-hook-linux-arm64"},
		{name: "built alone", program: "alone/bridge"},
		{name: "a folder of that name", program: "folder/bridge", beside: "folder/bridge-hook/file"},
		{name: "another name", program: "other/console", beside: "other/bridge-hook"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			program := put(tt.program)
			if tt.beside != "" {
				put(tt.beside)
			}
			want := ""
			if tt.want != "" {
				want = filepath.Join(dir, filepath.FromSlash(tt.want))
			}
			if got := proc.Sibling(program, "bridge", "bridge-hook"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "package", "bridge"), link); err != nil {
		t.Skip("no links here")
	}
	want, err := filepath.EvalSymlinks(filepath.Join(dir, "package", "bridge-hook"))
	if got := proc.Sibling(link, "bridge", "bridge-hook"); err != nil || got != want {
		t.Errorf("through a link: %q, want %q (%v)", got, want, err)
	}
}
