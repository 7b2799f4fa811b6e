package jobfiles

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
)

// Whatever write fails while what waited is brought in: nothing of it is lost, and
// nothing is there twice.
func TestVER_05_AFaultAtAnyStepOfBringingInLosesNothing(t *testing.T) {
	failed := errors.New("the disk failed")
	for n := 1; ; n++ {
		r := registryWithWaiting(t)
		steps := 0
		r.Files.Before = func(disk.Step, string) error {
			if steps++; steps == n {
				return failed
			}
			return nil
		}
		_, err := r.Read()
		if steps < n {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, failed) {
			t.Fatalf("step %d: %v", n, err)
		}
		r.Files.Before = nil
		file, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"old", "new"}, names(file)); diff != "" {
			t.Errorf("step %d: %s", n, diff)
		}
		again, err := r.Read()
		kept, globErr := filepath.Glob(filepath.Join(r.Kept, "jobs-*.json"))
		if err := errors.Join(err, globErr); err != nil || len(kept) != 1 || !cmp.Equal(names(file), names(again)) {
			t.Errorf("step %d: kept %v, %v then, %v", n, kept, names(again), err)
		}
		if _, err := os.Stat(filepath.Join(r.Pending, job.PendingFile)); !os.IsNotExist(err) {
			t.Errorf("step %d: it waits still: %v", n, err)
		}
	}
}

func TestVER_05_WhatWaitsAndCannotBeReadStaysAsItIs(t *testing.T) {
	r := registryWithWaiting(t)
	waiting := filepath.Join(r.Pending, job.PendingFile)
	before, err := os.ReadFile(r.Path)
	if err == nil {
		err = os.WriteFile(waiting, []byte(`{"version":1,"jo`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); err == nil {
		t.Error("the jobs are served without what waits")
	}
	after, err := os.ReadFile(r.Path)
	if data, readErr := os.ReadFile(waiting); errors.Join(err, readErr) != nil || string(data) != `{"version":1,"jo` || string(after) != string(before) {
		t.Errorf("%s, %s", data, after)
	}
}

// registryWithWaiting has one job in its file and one that waits.
func registryWithWaiting(t *testing.T) *Registry {
	t.Helper()
	dir := t.TempDir()
	r := &Registry{Path: filepath.Join(dir, "jobs.json"), Pending: filepath.Join(dir, "pending", "v1"), Kept: filepath.Join(dir, "kept")}
	if err := r.Write(job.File{Jobs: []job.Job{{ID: "1", Name: "old"}}}, 1); err != nil {
		t.Fatal(err)
	}
	r.Hold = true
	file, err := r.Read()
	if err == nil {
		file.Jobs = append(file.Jobs, job.Job{ID: "2", Name: "new"})
		err = r.Write(file, 2)
	}
	if err == nil {
		file, err = r.Read()
	}
	if err != nil || len(file.Jobs) != 2 {
		t.Fatalf("%v, %v", names(file), err)
	}
	r.Hold = false
	return r
}

func names(file job.File) (names []string) {
	for _, entry := range file.Jobs {
		names = append(names, entry.Name)
	}
	return names
}
