package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/agent/driver/jobstate"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sandbox"
)

// openCodeState is what opencode itself writes below the sandbox: its database, logs and
// snapshots. Programs, plugins and keys, which its other sessions run and read, are not
// among it (SEC-05). Its database holds all sessions in one file.
type openCodeState struct {
	folders  []string
	files    []string
	readable []string // what opencode reads besides: settings, keys, programs and plugins
}

// findOpenCodeState returns what there is. It makes the folders that opencode expects, and
// the files beside its database, for it cannot make them below the sandbox.
func findOpenCodeState(env run.Environ) (openCodeState, error) {
	at := func(variable, usual string) string {
		home := env.Get(variable)
		if home == "" {
			home = filepath.Join(run.UserHome(env), filepath.FromSlash(usual))
		}
		return filepath.Join(home, "opencode")
	}
	data := at("XDG_DATA_HOME", ".local/share")
	state, cache, config := at("XDG_STATE_HOME", ".local/state"), at("XDG_CACHE_HOME", ".cache"), at("XDG_CONFIG_HOME", ".config")
	s := openCodeState{
		folders:  []string{filepath.Join(state, "locks")},
		readable: []string{state, cache, config, filepath.Join(data, "auth.json"), filepath.Join(data, "bin"), filepath.Join(run.UserHome(env), ".opencode")},
	}
	if err := os.MkdirAll(filepath.Join(cache, "bin"), 0o700); err != nil {
		return s, fmt.Errorf("make opencode's cache folder: %w", err)
	}
	database := filepath.Join(data, "opencode.db")
	if !jobstate.IsPlain(database) { // opencode was not used yet: there is no other session
		s.folders = append(s.folders, data)
		return s, nil
	}
	for _, name := range []string{"log", "snapshot", "storage", "tool-output"} {
		s.folders = append(s.folders, filepath.Join(data, name))
	}
	for _, path := range []string{database, database + "-wal", database + "-shm"} {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = file.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) || !jobstate.IsPlain(path) {
			return s, fmt.Errorf("make what opencode keeps beside its database: %w", errors.Join(err, jobstate.ErrNotPlain))
		}
		s.files = append(s.files, path)
	}
	return s, nil
}

// openCodeShell makes the shell of a job below the sandbox, and returns its path, "" for
// the owner's shell as it is. Its commands have a sandbox of their own inside opencode's:
// they write what the job may write, and none of opencode's state, which other sessions
// run and read. Their caches are the job's. Those of a job that reads have no network. The password of opencode's
// server, by which they could answer its questions, is taken from them.
func openCodeShell(spec job.Spec, floor job.Floor) (string, error) {
	if floor != job.FloorSandbox {
		return "", nil
	}
	env := run.Environment(spec)
	own := env.Get("SHELL")
	if !filepath.IsAbs(own) || !slices.Contains([]string{"bash", "zsh", "sh", "dash", "ksh"}, filepath.Base(own)) || !isFile(own) {
		own = "/bin/sh"
		for _, folder := range filepath.SplitList(env.Get("PATH")) {
			if bash := filepath.Join(folder, "bash"); filepath.IsAbs(bash) && isFile(bash) {
				own = bash
				break
			}
		}
	}
	rules := run.Rules(spec)
	rules.NoNetwork = spec.Access == job.AccessRead
	line := sandbox.CommandLine(spec.Sandbox, rules, []string{own})
	for i, word := range line {
		line[i] = bridge.QuotePOSIX(word)
	}
	caches, err := run.PrivateCaches(spec, env)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("#!/bin/sh\nunset OPENCODE_SERVER_PASSWORD\n")
	for _, pair := range caches {
		name, value, _ := strings.Cut(pair, "=")
		script.WriteString("export " + name + "=" + bridge.QuotePOSIX(value) + "\n")
	}
	script.WriteString("exec " + strings.Join(line, " ") + " \"$@\"\n")
	// opencode tells shells apart by their names. The folder is none that the job may write.
	shell := filepath.Join(spec.StateFolder, "shell", filepath.Base(own))
	if err := os.MkdirAll(filepath.Dir(shell), 0o700); err != nil {
		return "", fmt.Errorf("make the shell of job %s: %w", spec.Job, err)
	}
	if err := disk.WriteAtomic(shell, []byte(script.String()), 0o700); err != nil {
		return "", fmt.Errorf("make the shell of job %s: %w", spec.Job, err)
	}
	return shell, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
