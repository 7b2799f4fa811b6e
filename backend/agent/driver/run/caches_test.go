package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/job"
)

// cachesJob makes a job of an owner whose home is home.
func cachesJob(t *testing.T, home string, pairs ...string) (job.Spec, Environ) {
	t.Helper()
	s := job.Spec{Job: "job-1", Access: job.AccessEdit, Folder: t.TempDir(), StateFolder: t.TempDir()}
	env := Environ{}
	env.set("HOME="+home, "USERPROFILE="+home)
	env.set(pairs...)
	return s, env
}

// makeFile makes a file and the folders above it.
func makeFile(t *testing.T, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("of the owner"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRWM_22_CachesAreTheJobs: what a job keeps for its next command lies in its own folder,
// whatever the owner's environment says, and what the owner has fetched is read.
func TestRWM_22_CachesAreTheJobs(t *testing.T) {
	home := t.TempDir()
	elsewhere := t.TempDir()
	for name, tt := range map[string]struct {
		has    []string // files of the owner's
		env    []string
		paired bool
		access job.Access
		own    []string          // variables that lead into the job's folder
		want   map[string]string // others
	}{
		"nothing is there": {own: []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "CARGO_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR", "GRADLE_USER_HOME"}, want: map[string]string{"GOFLAGS": "-modcacherw"}},
		"the owner has modules and crates": {
			has: []string{"go/pkg/mod/cache/download/x", ".cargo/registry/x"}, own: []string{"GOCACHE"}, want: map[string]string{"GOMODCACHE": "", "GOFLAGS": "", "CARGO_HOME": ""},
		},
		"they lie where go env says": {
			has: []string{"other/cache/download/x"}, env: []string{"GOMODCACHE=" + filepath.Join(home, "they lie where go env says", "other")},
			want: map[string]string{"GOMODCACHE": filepath.Join(home, "they lie where go env says", "other"), "GOFLAGS": ""},
		},
		"a paired PC's job reads none of them": {has: []string{"go/pkg/mod/cache/download/x", ".cargo/registry/x"}, paired: true, own: []string{"GOMODCACHE", "CARGO_HOME"}},
		"the owner's variables lead elsewhere": {
			env: []string{"GOCACHE=" + elsewhere, "XDG_CACHE_HOME=" + elsewhere, "npm_config_cache=" + elsewhere, "GOFLAGS=-mod=mod"},
			own: []string{"GOCACHE", "XDG_CACHE_HOME", "npm_config_cache"}, want: map[string]string{"GOFLAGS": "-mod=mod -modcacherw"},
		},
		"a job that reads has the owner's": {access: job.AccessRead, env: []string{"GOCACHE=" + elsewhere}, want: map[string]string{"GOCACHE": elsewhere, "XDG_CACHE_HOME": "", "MAVEN_ARGS": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			own := filepath.Join(home, name)
			for _, file := range tt.has {
				makeFile(t, own, filepath.FromSlash(file))
			}
			s, env := cachesJob(t, own, tt.env...)
			s.Unlinked = tt.paired
			if tt.access != "" {
				s.Access = tt.access
			}
			pairs, err := PrivateCaches(s, env)
			if err != nil {
				t.Fatal(err)
			}
			env.set(pairs...)
			for _, variable := range tt.own {
				if got := env.Get(variable); !strings.HasPrefix(got, Caches(s)) {
					t.Errorf("%s is %q, not below %s", variable, got, Caches(s))
				}
			}
			for variable, want := range tt.want {
				if got := env.Get(variable); got != want {
					t.Errorf("%s is %q, want %q", variable, got, want)
				}
			}
		})
	}
}

// TestRWM_22_ACacheInTheJobsFolderStays: the owner may have set one up for the project.
func TestRWM_22_ACacheInTheJobsFolderStays(t *testing.T) {
	s, env := cachesJob(t, t.TempDir())
	own := filepath.Join(s.Folder, ".cache")
	env.set("GOCACHE="+own, "XDG_CACHE_HOME="+s.Folder+"-beside")
	pairs, err := PrivateCaches(s, env)
	if err != nil || slices.ContainsFunc(pairs, func(pair string) bool { return strings.HasPrefix(pair, "GOCACHE=") }) {
		t.Errorf("%v, %v", pairs, err)
	}
	if !slices.Contains(pairs, "XDG_CACHE_HOME="+filepath.Join(Caches(s), "xdg")) {
		t.Errorf("a folder beside the job's stays: %v", pairs)
	}
}

// TestRWM_22_CachesEndWithTheRun: they are removed, also folders that may not be written,
// and no link leads the removal elsewhere.
func TestRWM_22_CachesEndWithTheRun(t *testing.T) {
	home := t.TempDir()
	makeFile(t, home, "kept")
	s, env := cachesJob(t, home)
	if _, err := PrivateCaches(s, env); err != nil {
		t.Fatal(err)
	}
	makeFile(t, Caches(s), "go-mod", "m@v1", "file")
	makeFile(t, Temporary(s), "other")
	makeFile(t, sharedMemory(s), "sem.1")
	for _, err := range []error{
		os.Chmod(filepath.Join(Caches(s), "go-mod", "m@v1"), 0o500), os.Symlink(home, filepath.Join(Caches(s), "link")),
	} {
		if err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
	if err := DropCaches(s.StateFolder); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{Caches(s): false, sharedMemory(s): false, filepath.Join(Temporary(s), "other"): true, filepath.Join(home, "kept"): true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s is there: %t", path, err == nil)
		}
	}
	if err := os.Symlink(home, Caches(s)); err != nil {
		t.Fatal(err)
	}
	if err := DropCaches(s.StateFolder); err != nil {
		t.Errorf("a link in their place: %v", err)
	}
	if _, err := os.Stat(filepath.Join(home, "kept")); err != nil {
		t.Error(err)
	}
}
