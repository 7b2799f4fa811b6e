package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// mounted has each of the files of a kind mounted from a folder beside the home, as a dev
// container has those of its host, and returns what the host has.
func (p *person) mounted(files []string, flags uintptr) (host func() map[string]string) {
	p.Helper()
	testkit.PrivateMounts(p)
	folder := p.TempDir()
	for _, name := range files {
		from := filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(from, []byte(p.get(name)), 0o640); err != nil {
			p.Fatal(err)
		}
		testkit.Bind(p, from, filepath.Join(p.in.Home, name), flags)
	}
	return func() map[string]string {
		p.Helper()
		found := map[string]string{}
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(name, "/", "_")))
			if err != nil {
				p.Fatal(err)
			}
			found[name] = string(data)
		}
		return found
	}
}

func TestRWM_13_MountedFilesAreWrittenAndGivenBack(t *testing.T) {
	for kind, files := range ownersFiles {
		t.Run(string(kind), func(t *testing.T) {
			p := newPerson(t, settled)
			host := p.mounted(files, 0)
			before, onHost := p.tree(), host()
			plan := p.install(kind)
			for _, edit := range plan.Edits {
				name, _ := filepath.Rel(p.in.Home, edit.Path)
				if _, is := onHost[name]; is && host()[name] != string(edit.After) {
					t.Errorf("the host's %s holds %s", name, host()[name])
				}
			}
			if again, err := connectors[kind].PlanInstall(context.Background(), p.in); err != nil || !again.Empty() {
				t.Errorf("a second time: %v, %+v", err, again.Edits)
			}
			p.uninstall(kind)
			if diff := cmp.Diff(onHost, host()); diff != "" {
				t.Errorf("on the host (-before +after)\n%s", diff)
			}
			if diff := cmp.Diff(before, p.tree()); diff != "" {
				t.Error(diff)
			}
			if left, err := filepath.Glob(filepath.Join(p.in.State, ".*")); err != nil || len(left) != 0 {
				t.Errorf("copies that nobody needs: %v, %v", left, err)
			}
		})
	}
}

func TestRWM_13_AReadOnlyMountIsNamed(t *testing.T) {
	for kind, files := range ownersFiles {
		t.Run(string(kind), func(t *testing.T) {
			p := newPerson(t, settled)
			last := files[len(files)-1:]
			host := p.mounted(last, unix.MS_RDONLY)
			before, onHost := p.tree(), host()
			plan, err := connectors[kind].PlanInstall(context.Background(), p.in)
			if err != nil {
				t.Fatal(err)
			}
			err = Apply(plan)
			want := filepath.Join(p.in.Home, last[0]) + " could not be written: it is mounted read-only. Mount it writable, or edit the file that is mounted there, and try again"
			if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(onHost, host()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, p.tree()); diff != "" {
				t.Errorf("(-before +after)\n%s", diff)
			}
			if kinds, err := Installed(p.in.State); err != nil || len(kinds) != 0 {
				t.Errorf("installed: %v, %v", kinds, err)
			}
		})
	}
}

// A file that Bridge made and that is mounted since cannot be taken away: that is said.
func TestRWM_13_AMountedFileThatBridgeMadeIsNamed(t *testing.T) {
	p := newPerson(t, nil)
	p.install(bridge.Claude)
	host := p.mounted([]string{".claude/settings.json"}, 0)
	before, onHost := p.tree(), host()
	plan, err := PlanRemoval(bridge.Claude, p.in.State)
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(plan); bridge.CodeOf(err) != bridge.Storage || !strings.Contains(err.Error(), "could not be removed: it is mounted as a single file. Unmount it") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(onHost, host()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, p.tree()); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}
