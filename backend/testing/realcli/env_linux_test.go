package realcli_test

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// What an owner keeps in the start-up file of his shell is found by the jobs of a real
// claude and a real codex, whoever started the broker, and stands nowhere else.
func TestJOB_28_TheOwnersKeysReachRealJobs(t *testing.T) {
	testkit.Long(t, "two CLIs work from two brokers")
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skipf("SKIPPED, there is no bash to keep a key: %v", err)
	}
	for name, begin := range map[string]func(w *world){
		"from bridge serve":         (*world).serve,
		"from a session's own hook": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "p")
			keys := w.keysInTheShell()
			w.connect()
			w.letSpawn()
			begin(w)
			served, err := w.home.ServeOpenCode(soon(t), w.home.Project("p"))
			must(t, err)
			t.Cleanup(func() { served.Close(soon(t)) }) //nolint:errcheck // Close of the home kills what is left
			if w.page == nil {
				w.model.Script("wakes", scripted.Say("awake"))
				w.prompt(served, "wakes")
				w.request("a first turn", asks("wakes", 0))
				w.page = signIn(t, strings.TrimSpace(w.bridge("url")))
			}
			w.meet(served, "opencode-p")
			for _, kind := range []string{"claude", "codex"} {
				w.step(kind, func(w *world) {
					gate := kind + "-works"
					w.model.Script(kind, scripted.Say(kind+"-has-its-key").After(gate))
					w.model.Script("gives-"+kind, scripted.Call(openCodeTool+"spawn_"+kind, map[string]any{"prompt": "play script:" + kind}), scripted.Say("given"))
					w.prompt(served, "gives-"+kind)
					job := jobName.FindString(last(w.request("the job", asks("gives-"+kind, 1))))
					must(w.T, w.model.AtGate(soon(w.T), gate))
					w.unseen(keys, "/api/state", "/api/runs/"+job, "/api/runs/"+job+"?from=0")
					w.model.Open(gate)
					w.request("the result", holds(kind+"-has-its-key"))
					w.idle("opencode-p")
					w.unseen(keys, "/api/state", "/api/runs/"+job)
				})
			}
		})
	}
}

// keysInTheShell keeps the keys of the model's providers where only the owner's shell
// reads them, as a distribution's own files do it.
func (w *world) keysInTheShell() (keys []string) {
	w.Helper()
	names := []string{"ANTHROPIC_API_KEY", "FAKE_KEY"}
	var exports strings.Builder
	exports.WriteString("case $- in *i*) ;; *) return ;; esac\n")
	for _, pair := range w.home.Env() {
		name, key, _ := strings.Cut(pair, "=")
		if slices.Contains(names, name) {
			exports.WriteString("export " + pair + "\n")
			keys = append(keys, key)
		}
	}
	w.home.Less, w.home.More = names, append(w.home.More, "SHELL=/bin/bash")
	must(w.T, w.home.WriteProfile())
	must(w.T, w.home.Append(".bashrc", exports.String()))
	must(w.T, w.home.Append(".profile", ". ~/.bashrc\n"))
	return keys
}

// unseen looks for the keys where another user, a page or a reader of files would: on the
// command lines of all processes, in what the page is answered, in all files of the home.
func (w *world) unseen(keys []string, answers ...string) {
	w.Helper()
	clean := func(where string, raw []byte) {
		for _, key := range keys {
			if strings.Contains(string(raw), key) {
				w.Errorf("a key stands in %s", where)
			}
		}
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(w.T, err)
	for _, path := range lines {
		raw, err := os.ReadFile(path)
		if err == nil { // one that has ended has none
			clean(path, raw)
		}
	}
	for _, path := range answers {
		response := w.page.get(w.T, soon(w.T), path)
		raw, err := io.ReadAll(response.Body)
		must(w.T, err)
		response.Body.Close() //nolint:errcheck // it was read
		if response.StatusCode != http.StatusOK {
			w.Errorf("%s: %s", path, response.Status)
		}
		clean(path, raw)
	}
	must(w.T, filepath.WalkDir(w.home.Dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.Name() == "shell_snapshots" {
			return fs.SkipDir // codex keeps its user's whole environment there, of every session of its own
		}
		if err != nil || !entry.Type().IsRegular() || path == filepath.Join(w.home.Dir, ".bashrc") {
			return nil //nolint:nilerr // what is gone meanwhile holds nothing
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			clean(path, raw)
		}
		return nil
	}))
}
