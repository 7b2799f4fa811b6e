package gitwork

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// trapVariable marks what a trap leaves running.
const trapVariable = "BRIDGE_TEST_TRAP"

func init() { trapProgram = trap }

// trap is the program that a hostile repository names. It reaches for whatever is outside,
// starts a process that stays, and then does what a filter does: nothing.
func trap(outside, inside string) {
	note := func(path string) { _ = os.WriteFile(path, []byte(strings.Join(os.Args, " ")), 0o600) }
	note(filepath.Join(inside, "started"))
	note(filepath.Join(outside, "ran"))
	for _, socket := range []string{filepath.Join(outside, "service"), os.Getenv("BRIDGE_TEST_PORT")} {
		network := "unix"
		if !strings.HasPrefix(socket, "/") {
			network = "tcp"
		}
		if conn, err := net.Dial(network, socket); err == nil {
			conn.Close()
			note(filepath.Join(inside, "connected-"+network))
		}
	}
	if os.Getenv("BRIDGE_TEST_PROVOKED") == "" {
		stays := exec.CommandContext(context.Background(), "sleep", "600")
		stays.Env, stays.SysProcAttr = []string{trapVariable + "=" + outside}, &syscall.SysProcAttr{Setsid: true}
		_ = stays.Start()
	}
	if os.Getenv("BRIDGE_TEST_PROVOKED") == "" {
		time.AfterFunc(time.Second, func() { os.Exit(1) }) // whose git waits for it, too
		_, _ = io.Copy(os.Stdout, os.Stdin)
	}
}

// left lists what traps have left running.
func left(outside string) (pids []string) {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(trapVariable+"="+outside)) {
			pids = append(pids, path)
		}
	}
	return pids
}

// scene of a hostile repository: the job has planted something in its worktree, or in
// git's folder, which it may write.
type hostile struct {
	*world
	tree    Worktree
	outside string // where a trap must not reach
	script  string // runs the trap
}

func newHostile(t *testing.T, floor bool) *hostile {
	t.Helper()
	h := &hostile{world: newWorldWith(t, floor)}
	h.outside = filepath.Join(h.dir, "outside")
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(h.outside, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(h.outside, "service"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	h.script = filepath.Join(h.dir, "trap.sh")
	h.write(h.dir, "trap.sh", fmt.Sprintf("#!/bin/sh\nexec %s test-trap %s %s\n", self, h.outside, filepath.Join(h.main, ".git")))
	if err := os.Chmod(h.script, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// provoke runs the owner's own git, which the trap has to catch: else it proves nothing.
func (h *hostile) provoke(dir string, args ...string) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(h.env, "GIT_EDITOR=true", "GIT_CONFIG_NOSYSTEM=1", "BRIDGE_TEST_PROVOKED=1")
	out, _ := cmd.CombinedOutput() // it may well fail
	if _, err := os.Stat(filepath.Join(h.outside, "ran")); err != nil {
		h.t.Errorf("git %q does not go into the trap: this proves nothing\n%s", args, out)
	}
}

// submodule adds one that has its own git folder, below the worktree.
func (h *hostile) submodule(dir, name string) string {
	inner := filepath.Join(dir, name)
	h.git(dir, "init", "-q", inner)
	h.write(inner, ".gitattributes", "*.txt filter=x diff=x\n")
	h.write(inner, "a.txt", "one\n")
	h.commit(inner, "first")
	h.write(inner, "a.txt", "two\n")
	h.write(dir, ".gitmodules", fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = ./x\n\tignore = none\n", name, name))
	h.git(dir, "add", ".gitmodules", name)
	return inner
}

// traps are the ways that are known, each with the owner's command that goes into it.
var traps = map[string]struct {
	plant   func(h *hostile) (provoke []string)
	needs   string // a program
	planted bool   // before the job began
}{
	"a submodule's filter": {plant: func(h *hostile) []string {
		h.git(h.submodule(h.tree.Path, "lib"), "config", "filter.x.clean", h.script)
		return []string{"status"}
	}},
	"a nested submodule's filter": {plant: func(h *hostile) []string {
		lib := h.submodule(h.tree.Path, "lib")
		h.git(h.submodule(lib, "deeper"), "config", "filter.x.clean", h.script)
		h.commit(lib, "nested")
		h.git(h.tree.Path, "add", "lib")
		return []string{"-C", "lib", "status"}
	}},
	"a submodule's fsmonitor": {plant: func(h *hostile) []string {
		h.git(h.submodule(h.tree.Path, "lib"), "config", "core.fsmonitor", h.script)
		return []string{"status"}
	}},
	"a submodule's textconv": {plant: func(h *hostile) []string {
		h.git(h.submodule(h.tree.Path, "lib"), "config", "diff.x.textconv", h.script+" <")
		h.git(h.main, "config", "diff.submodule", "diff")
		return []string{"--no-pager", "diff", "--submodule=diff"}
	}},
	"a submodule by the settings": {plant: func(h *hostile) []string {
		h.git(h.submodule(h.tree.Path, "lib"), "config", "filter.x.clean", h.script)
		h.git(h.main, "config", "submodule.lib.ignore", "none")
		h.git(h.main, "config", "diff.ignoreSubmodules", "none")
		h.git(h.main, "config", "status.submoduleSummary", "true")
		return []string{"status"}
	}},
	"a promisor remote": {plant: func(h *hostile) []string {
		h.promisor(h.main)
		return []string{"show", "HEAD:gone.txt"}
	}},
	"a promisor remote by another protocol": {plant: func(h *hostile) []string {
		h.promisor(h.main)
		h.git(h.main, "config", "remote.origin.url", "ext::"+h.script)
		h.git(h.main, "config", "protocol.ext.allow", "always")
		return []string{"show", "HEAD:gone.txt"}
	}},
	"a promisor remote by ssh": {plant: func(h *hostile) []string {
		h.promisor(h.main)
		h.git(h.main, "config", "remote.origin.url", "ssh://nowhere.example/x")
		h.git(h.main, "config", "core.sshCommand", h.script)
		return []string{"show", "HEAD:gone.txt"}
	}},
	"a filter": {plant: func(h *hostile) []string {
		h.filter(h.tree.Path, "config", "filter.x.clean", h.script)
		return []string{"--no-pager", "diff"}
	}},
	"a filter whose name ends the key": {plant: func(h *hostile) []string {
		h.git(h.main, "config", "filter.x=y.clean", h.script)
		h.write(h.tree.Path, ".gitattributes", "*.txt filter=x=y\n")
		h.write(h.tree.Path, "new.txt", "new\n")
		return []string{"--no-pager", "diff"}
	}},
	"a filter process": {plant: func(h *hostile) []string {
		h.filter(h.tree.Path, "config", "filter.x.process", h.script)
		return []string{"--no-pager", "diff"}
	}},
	"an included file": {plant: func(h *hostile) []string {
		h.write(filepath.Join(h.main, ".git"), "more", "[filter \"x\"]\n\tclean = "+h.script+"\n")
		h.filter(h.tree.Path, "config", "include.path", "more")
		return []string{"--no-pager", "diff"}
	}},
	"a file that is included on a branch": {plant: func(h *hostile) []string {
		h.write(filepath.Join(h.main, ".git"), "more", "[filter \"x\"]\n\tclean = "+h.script+"\n")
		h.filter(h.tree.Path, "config", "includeIf.onbranch:bridge/**.path", "more")
		return []string{"--no-pager", "diff"}
	}},
	"the worktree's own settings": {plant: func(h *hostile) []string {
		h.git(h.main, "config", "extensions.worktreeConfig", "true")
		h.filter(h.tree.Path, "config", "--worktree", "filter.x.clean", h.script)
		return []string{"--no-pager", "diff"}
	}},
	"another git folder": {plant: func(h *hostile) []string {
		fake := filepath.Join(h.tree.Path, "fake.git")
		h.git(h.dir, "clone", "-q", "--bare", h.main, fake)
		h.write(h.tree.Path, ".git", "gitdir: "+fake+"\n")
		h.git(fake, "config", "core.bare", "false")
		h.git(fake, "config", "core.worktree", h.tree.Path)
		h.git(h.tree.Path, "read-tree", "HEAD")
		h.filter(h.tree.Path, "config", "filter.x.clean", h.script)
		return []string{"--no-pager", "diff"}
	}},
	"alternates": {plant: func(h *hostile) []string {
		h.git(h.dir, "clone", "-q", "--bare", h.main, filepath.Join(h.dir, "other.git"))
		h.write(h.main, ".git/objects/info/alternates", filepath.Join(h.dir, "other.git", "objects")+"\n")
		h.git(h.main, "config", "core.alternateRefsCommand", h.script)
		h.commit(filepath.Join(h.tree.Path), "one more")
		return []string{"fetch", filepath.Join(h.dir, "other.git")}
	}},
	"fsmonitor and a hook": {plant: func(h *hostile) []string {
		h.git(h.main, "config", "core.fsmonitor", h.script)
		for _, hook := range []string{"reference-transaction", "post-index-change", "post-checkout", "pre-commit"} {
			h.write(h.main, ".git/hooks/"+hook, h.read(h.dir, "trap.sh"))
			if err := os.Chmod(filepath.Join(h.main, ".git/hooks", hook), 0o755); err != nil {
				h.t.Fatal(err)
			}
		}
		return []string{"status"}
	}},
	"drivers of diff and merge": {plant: func(h *hostile) []string {
		h.write(h.tree.Path, ".gitattributes", "*.txt diff=x merge=x\n")
		h.git(h.main, "config", "diff.x.textconv", h.script+" <")
		h.git(h.main, "config", "merge.x.driver", h.script)
		h.git(h.main, "config", "diff.external", h.script)
		return []string{"--no-pager", "diff"}
	}},
	"a signature": {plant: func(h *hostile) []string {
		h.git(h.main, "config", "gpg.program", h.script)
		h.git(h.main, "config", "log.showSignature", "true")
		h.git(h.main, "config", "commit.gpgSign", "true")
		return []string{"commit", "--allow-empty", "-m", "signed"}
	}},
	"an extension of git-lfs": {needs: "git-lfs", plant: func(h *hostile) []string {
		h.git(h.main, "config", "lfs.extension.x.clean", h.script)
		h.git(h.main, "config", "lfs.extension.x.smudge", h.script)
		h.git(h.main, "config", "lfs.extension.x.priority", "0")
		h.write(h.tree.Path, ".gitattributes", "*.txt filter=lfs\n")
		h.write(h.tree.Path, "new.txt", "new\n")
		return []string{"--no-pager", "diff"}
	}},
	"a transfer of git-lfs": {needs: "git-lfs", plant: func(h *hostile) []string {
		h.git(h.main, "config", "lfs.customtransfer.x.path", h.script)
		h.git(h.main, "config", "lfs.standalonetransferagent", "x")
		h.git(h.main, "config", "lfs.url", "https://nowhere.example/x")
		h.write(h.tree.Path, ".gitattributes", "*.txt filter=lfs\n")
		h.write(h.tree.Path, "new.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("0a", 32)+"\nsize 3\n")
		h.git(h.tree.Path, "-c", "filter.lfs.process=", "-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false", "add", "-A")
		h.git(h.tree.Path, "-c", "filter.lfs.process=", "-c", "filter.lfs.clean=", "-c", "filter.lfs.required=false", "commit", "-q", "-m", "a pointer")
		return []string{"cat-file", "--filters", "HEAD:new.txt"}
	}},
	"a filter of the repository's own that the job rewrote": {planted: true, plant: func(h *hostile) []string {
		h.write(h.tree.Path, ".gitattributes", "*.txt filter=x\n")
		h.write(h.tree.Path, "new.txt", "new\n")
		return []string{"--no-pager", "diff"}
	}},
}

func (h *hostile) filter(dir string, config ...string) {
	h.git(dir, config...)
	h.write(dir, ".gitattributes", "*.txt filter=x\n")
	h.write(dir, "new.txt", "new\n")
}

// promisor has the job commit a file whose content another repository has promised.
func (h *hostile) promisor(main string) {
	h.git(h.tree.Path, "update-index", "--add", "--cacheinfo", "100644,"+strings.Repeat("1b", 20)+",gone.txt")
	tree := h.git(h.tree.Path, "write-tree", "--missing-ok")
	h.git(h.tree.Path, "reset", "-q", "--soft", h.git(h.tree.Path, "commit-tree", "-p", "HEAD", "-m", "promised", tree))
	for key, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.uploadpack": h.script,
		"remote.origin.url": h.dir, "protocol.file.allow": "always", "protocol.allow": "always",
	} {
		h.git(main, "config", key, value)
	}
}

// every runs each operation of the package. What they say is not what this is about.
func (h *hostile) every(g *Git, after func(operation string)) {
	here, err := g.Checkout(h.ctx(), h.main)
	if err != nil {
		h.t.Logf("Checkout: %v", err)
	}
	own, head := g.Pin(&here), h.git(h.tree.Path, "rev-parse", "HEAD")
	landed := Landed{Action: Squash, Head: head, Target: h.git(h.main, "rev-parse", "HEAD"), On: "main"}
	for _, test := range []struct {
		name string
		do   func() error
	}{
		{"diff of the branch", func() error { _, err := g.DiffTrees(h.ctx(), h.main, h.tree.BaseTree, head); return err }},
		{"landed", func() error { _, err := g.Landed(h.ctx(), h.main, head, h.tree.Base); return err }},
		{"diff", func() error { _, err := g.Diff(h.ctx(), h.tree.Path, h.tree.BaseTree); return err }},
		{"start in the owner's folder", func() error { _, _, err := own.Start(h.ctx(), h.main, job); return err }},
		{"end in the owner's folder", func() error { _, err := own.End(h.ctx(), h.main, job); return err }},
		{"finish, dry", func() error {
			_, err := g.Finish(h.ctx(), h.tree, job, Squash, "", true)
			return err
		}},
		{"park", func() error { _, err := g.Park(h.ctx(), h.tree, job); return err }},
		{"undo", func() error {
			pinned, err := g.inWorktree(h.ctx(), h.tree)
			if err != nil {
				return err
			}
			return landing{pinned, h.tree, job}.undo(h.ctx(), "HEAD", h.git(h.main, "rev-parse", h.tree.Branch))
		}},
		{"finish", func() error {
			finish, err := g.Finish(h.ctx(), h.tree, job, Squash, "", false)
			landed.Next = finish.Commit
			return err
		}},
		{"undo of the finish", func() error {
			plan, err := landed.Prepare(h.ctx(), g, h.tree, job, "", false)
			if err == nil {
				_, err = g.CarryOut(h.ctx(), h.tree, job, plan)
			}
			return err
		}},
		{"a commit of the branch", func() error { _, err := h.tree.Contains(h.ctx(), g, head, h.tree.Base); return err }},
		{"reclaim", func() error { _, err := g.Reclaim(h.ctx(), h.tree, job, true); return err }},
		{"another worktree", func() error {
			r, err := g.Repository(h.ctx(), h.main)
			if err == nil {
				_, err = g.Add(h.ctx(), r, "codex-job-00000002", h.trees)
			}
			return err
		}},
	} {
		if err := test.do(); err != nil {
			h.t.Logf("%s: %v", test.name, err)
		}
		after(test.name)
	}
}

// What a repository names reaches nothing outside of that repository when Bridge works
// there: not below the floor, and where there is none git does not start it. Settings
// cannot know what the next git starts; the floor need not, and is the same below all of them:
// a short run tries it alone with every third.
func TestSEC_02_WhatARepositoryNamesReachesNothing(t *testing.T) {
	var started, floors atomic.Int32
	every := testkit.Stride(t, 3)
	t.Run("each", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(traps)) {
			trap := traps[name]
			for _, how := range []string{"floor and settings", "settings alone", "floor alone"} {
				if how == "floor and settings" && !trap.planted {
					continue // each of the two alone is tried
				}
				if how == "floor alone" && i%every != 0 {
					continue
				}
				t.Run(name+", "+how, func(t *testing.T) {
					t.Parallel()
					hasFloor := how != "settings alone"
					if err := sandbox.Available(); err != nil && hasFloor {
						t.Skipf("SKIPPED: %v", err)
					}
					if _, err := exec.LookPath(trap.needs); err != nil && trap.needs != "" {
						t.Skipf("SKIPPED, no %s", trap.needs)
					}
					if hasFloor {
						floors.Add(1)
					}
					h := newHostile(t, hasFloor)
					if trap.needs == "git-lfs" {
						h.git(h.dir, "lfs", "install", "--skip-repo")
					}
					if trap.planted {
						h.git(h.main, "config", "filter.x.clean", h.script)
					}
					h.tree = h.add(h.main)
					recorded, err := h.g.Describe(h.ctx(), h.tree)
					if err != nil {
						t.Fatal(err)
					}
					h.write(h.tree.Path, "a.txt", "one\ntwo\nthree\nfour\n5\n")
					h.provoke(h.tree.Path, trap.plant(h)...)
					h.forget()
					if h.g.untamed = how == "floor alone"; h.g.untamed {
						h.g.env = h.env
					}
					h.every(h.g.Pin(&recorded), func(operation string) { h.look(operation) })
					if h.exists(filepath.Join(h.main, ".git", "started")) {
						t.Log("the program was started")
						if started.Add(1); how == "settings alone" {
							t.Error("the program was started where there is no floor")
						}
					} else if trap.planted && how == "floor and settings" {
						t.Error("the filter from before the job began was not started")
					}
				})
			}
		}
	})
	if started.Load() < floors.Load()/3 && sandbox.Available() == nil {
		t.Errorf("%d programs were started: the floor was hardly tried", started.Load())
	}
}

func (h *hostile) exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// look sees what an operation let happen.
func (h *hostile) look(operation string) {
	h.t.Helper()
	git := filepath.Join(h.main, ".git")
	if h.exists(filepath.Join(h.outside, "ran")) {
		h.t.Errorf("%s: the repository's program wrote outside of it", operation)
		_ = os.Remove(filepath.Join(h.outside, "ran"))
	}
	for _, network := range []string{"unix", "tcp"} {
		if h.exists(filepath.Join(git, "connected-"+network)) {
			h.t.Errorf("%s: the repository's program connected by %s", operation, network)
		}
	}
	if pids := left(h.outside); len(pids) > 0 {
		h.t.Errorf("%s: the repository's program is still there: %v", operation, pids)
	}
}

// forget removes what a trap has noted.
func (h *hostile) forget() {
	for _, path := range []string{filepath.Join(h.outside, "ran"), filepath.Join(h.main, ".git", "started"), filepath.Join(h.main, ".git", "connected-unix"), filepath.Join(h.main, ".git", "connected-tcp")} {
		_ = os.Remove(path) // not every one is there
	}
}
