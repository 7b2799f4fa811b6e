package realcli_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"bridge/backend/agent/driver"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// action is one thing that a job may try. Its target is named by the token, which
// no other action has.
type action struct {
	token, name string
	do          func(p *place) scripted.Step
	// ran reports whether it did what it is about; said is what the model read of it.
	ran func(p *place, said string) bool
}

// place is where one job tries everything.
type place struct {
	home    *scripted.Home
	kind    string
	folder  string // a repository
	outside string // beside it
	model   *scripted.FakeModel
}

func (p *place) in(name string) string  { return filepath.Join(p.folder, name) }
func (p *place) out(name string) string { return filepath.Join(p.outside, name) }

// wasAsked reports whether the model was asked for the page of that token.
func (p *place) wasAsked(token string) bool {
	return slices.ContainsFunc(p.model.Requests(), func(r scripted.Request) bool { return r.Path == "GET /"+token+"-"+filepath.Base(p.folder) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func holdsText(path, text string) bool {
	raw, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(raw), text)
}

// actions are all of them. In a command, OUT is the folder outside and URL the model.
func actions() []action {
	var all []action
	add := func(name, command string, ran func(p *place, said string) bool) {
		token := fmt.Sprintf("x%02d", len(all)+1)
		all = append(all, action{token, name, func(p *place) scripted.Step {
			replaced := strings.NewReplacer("TOKEN", token, "OUT", p.outside, "URL", p.model.URL()).Replace(command)
			return shell(p.kind, replaced)
		}, ran})
	}
	reads := func(name, command string) {
		add(name, command, func(_ *place, said string) bool { return strings.Contains(said, "to-be-read") })
	}
	makes := func(name, command string) {
		token := fmt.Sprintf("x%02d", len(all)+1)
		add(name, command, func(p *place, _ string) bool { return exists(p.in(token)) })
	}
	outside := func(name, command string) {
		token := fmt.Sprintf("x%02d", len(all)+1)
		add(name, command, func(p *place, _ string) bool { return exists(p.out(token)) })
	}
	tool := func(name string, do func(p *place, token string) scripted.Step, ran func(p *place, token string) bool) {
		token := fmt.Sprintf("x%02d", len(all)+1)
		all = append(all, action{token, name, func(p *place) scripted.Step { return do(p, token) }, func(p *place, _ string) bool { return ran(p, token) }})
	}

	reads("ls", "ls TOKEN")
	reads("cat", "cat TOKEN")
	reads("git status", "git status --short TOKEN-to-be-read")
	reads("grep", "grep -h read TOKEN")
	reads("cat a file outside", "cat OUT/TOKEN")
	tool("write by its own tool", func(p *place, token string) scripted.Step { return ownWrite(p.kind, p.in(token)) },
		func(p *place, token string) bool { return exists(p.in(token)) })
	tool("edit by its own tool", func(p *place, token string) scripted.Step { return ownEdit(p.kind, p.in(token)) },
		func(p *place, token string) bool { return holdsText(p.in(token), "changed") })
	makes("redirect", "echo 1 > TOKEN")
	makes("touch", "touch TOKEN")
	add("rm", "rm TOKEN", func(p *place, _ string) bool { return !exists(p.in("x10")) })
	makes("a script", `perl -e 'open(F, ">", "TOKEN")'`)
	add("sed -i", "sed -i s/to-be-read/changed/ TOKEN", func(p *place, _ string) bool { return holdsText(p.in("x12"), "changed") })
	makes("tee", "echo 1 | tee TOKEN")
	add("find -delete", "find TOKEN -delete", func(p *place, _ string) bool { return !exists(p.in("x14")) })
	makes("sort -o", "sort -o TOKEN tracked")
	makes("git diff --output", "git diff --output=TOKEN")
	makes("git log --output", "git log --output=TOKEN")
	makes("awk", `awk 'BEGIN { print 1 > "TOKEN" }'`)
	makes("env", "env touch TOKEN")
	makes("xargs", "echo TOKEN | xargs touch")
	makes("a command behind another", "cat tracked; touch TOKEN")
	add("git commit", "git commit -qam TOKEN", func(p *place, _ string) bool { return holdsText(p.in(".git/logs/HEAD"), "x22") })
	add("git branch", "git branch TOKEN", func(p *place, _ string) bool { return exists(p.in(".git/refs/heads/x23")) })
	outside("outside by ..", "touch ../outside-$(basename $PWD)/TOKEN")
	outside("outside by a link", "touch link/TOKEN")
	outside("outside by its path", "touch OUT/TOKEN")
	tool("outside by its own tool", func(p *place, token string) scripted.Step { return ownWrite(p.kind, p.out(token)) },
		func(p *place, token string) bool { return exists(p.out(token)) })
	tool("outside by its own tool and a link", func(p *place, token string) scripted.Step { return ownWrite(p.kind, p.in("link/"+token)) },
		func(p *place, token string) bool { return exists(p.out(token)) })
	add("curl", "curl -s URL/"+"TOKEN-$(basename $PWD)", func(p *place, _ string) bool { return p.wasAsked("x29") })
	tool("a page by its own tool", func(p *place, token string) scripted.Step {
		url := p.model.URL() + "/" + token + "-" + filepath.Base(p.folder)
		switch p.kind {
		case "codex":
			return shell(p.kind, "true") // its provider looks at pages, if anybody
		case "opencode":
			return scripted.Call("webfetch", map[string]any{"url": url, "format": "text"})
		default:
			return scripted.Call("WebFetch", map[string]any{"url": url, "prompt": "what is there?"})
		}
	}, func(p *place, token string) bool { return p.wasAsked(token) })
	own := fmt.Sprintf("x%02d", len(all)+1)
	add("opencode's state", "touch ~/.local/share/opencode/TOKEN-$(basename $PWD)", func(p *place, _ string) bool {
		return exists(filepath.Join(p.home.Dir, ".local/share/opencode", own+"-"+filepath.Base(p.folder)))
	})
	tool("touch by a native child", func(p *place, token string) scripted.Step {
		script := filepath.Base(p.folder) + "-child"
		p.model.Script(script, shell(p.kind, "touch "+token), scripted.Say("done"))
		prompt := "play script:" + script
		switch p.kind {
		case "codex":
			return scripted.Call("multi_agent_v1/spawn_agent", map[string]any{"message": prompt})
		case "opencode":
			return scripted.Call("task", map[string]any{"description": "a child", "prompt": prompt, "subagent_type": "general"})
		default:
			return scripted.Call("Task", map[string]any{"description": "a child", "prompt": prompt, "subagent_type": "general-purpose"})
		}
	}, func(p *place, token string) bool { return exists(p.in(token)) })
	return all
}

func codexPatch(lines ...string) scripted.Step {
	return shell("codex", "apply_patch <<'EOF'\n*** Begin Patch\n"+strings.Join(lines, "\n")+"\n*** End Patch\nEOF\n")
}

func ownWrite(kind, path string) scripted.Step {
	if kind == "codex" {
		return codexPatch("*** Add File: "+path, "+made")
	}
	return writes(kind, path, "made")
}

func ownEdit(kind, path string) scripted.Step {
	switch kind {
	case "codex":
		return codexPatch("*** Update File: "+path, "@@", "-to-be-read", "+changed")
	case "opencode":
		return scripted.Call("edit", map[string]any{"filePath": path, "oldString": "to-be-read", "newString": "changed"})
	default:
		return scripted.Call("Edit", map[string]any{"file_path": path, "old_string": "to-be-read", "new_string": "changed"})
	}
}

// ownRead comes before an edit: claude and opencode want to have read what they edit.
func ownRead(kind, path string) scripted.Step {
	switch kind {
	case "codex":
		return shell(kind, "true")
	case "opencode":
		return scripted.Call("read", map[string]any{"filePath": path})
	default:
		return scripted.Call("Read", map[string]any{"file_path": path})
	}
}

// newPlace makes a repository in which everything can be tried.
func (w *world) newPlace(kind string, access job.Access) *place {
	w.Helper()
	name := kind + "-" + string(access)
	p := &place{home: w.home, kind: kind, folder: w.home.Project(name), outside: w.home.Project("outside-" + name), model: w.model}
	const text = "to-be-read\n"
	files := map[string]string{"x01/to-be-read": text, "x02": text, "x03-to-be-read": text, "x04": text, "x07": text, "x10": text, "x12": text, "x14/x": text, "tracked": "old\n"}
	for name, text := range files {
		must(w.T, os.MkdirAll(filepath.Dir(p.in(name)), 0o700))
		must(w.T, os.WriteFile(p.in(name), []byte(text), 0o600))
	}
	must(w.T, os.MkdirAll(p.outside, 0o700))
	must(w.T, os.WriteFile(p.out("x05"), []byte(text), 0o600))
	must(w.T, os.Symlink(p.outside, p.in("link")))
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "t"}, {"config", "user.email", "t@localhost"}, {"add", "tracked"}, {"commit", "-qm", "begin"}} {
		_, err := w.home.Run(soon(w.T), p.folder, "", "/usr/bin/git", args...)
		must(w.T, err)
	}
	must(w.T, os.WriteFile(p.in("tracked"), []byte("new\n"), 0o600))
	return p
}

// cells is what became of each action: whether it was asked about, and whether it
// was done. Under ask every question is denied, else it is allowed: what lies below
// has the last word then.
func (w *world) cells(ctx context.Context, p *place, access job.Access) (map[string]string, error) {
	script := filepath.Base(p.folder)
	var steps []scripted.Step
	at := map[string]int{} // the step behind an action's
	all := actions()
	for _, a := range append(all[len(all)-1:], all...)[:len(all)] { // the child first: it takes its time
		if a.name == "edit by its own tool" {
			steps = append(steps, ownRead(p.kind, p.in(a.token)))
		}
		steps = append(steps, a.do(p))
		at[a.token] = len(steps)
	}
	w.model.Script(script, append(steps, scripted.Say("done"))...)
	asked, err := w.tryAll(ctx, p, access, script)
	if err != nil {
		return nil, err
	}
	cells := map[string]string{}
	for _, a := range actions() {
		said := ""
		for _, r := range w.model.Requests() {
			if r.Script == script && r.Step == at[a.token] && !r.Aux {
				said = last(r)
			}
		}
		cell := "no"
		if a.ran(p, said) {
			cell = "ran"
		}
		if asked[a.token] {
			cell = "asked " + cell
		}
		cells[a.name] = cell
	}
	return cells, nil
}

var target = regexp.MustCompile(`\bx[0-9]{2}\b`)

// tryAll has a job play the script and answers what it asks. asked are the targets
// that were asked about.
func (w *world) tryAll(ctx context.Context, p *place, access job.Access, script string) (asked map[string]bool, err error) {
	kind := bridge.AgentKind(p.kind)
	d, err := driver.For(kind)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := filepath.EvalSymlinks(filepath.Join(w.home.Bin, p.kind))
	if err != nil {
		return nil, err
	}
	state := filepath.Join(w.home.Root, script)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	var writable []string
	if access == job.AccessEdit {
		writable = []string{p.in(".git")} // as the runner gives it
	}
	run, err := d.Start(ctx, job.Spec{
		Writable: writable, Job: script, Token: rand.Text(), Kind: kind, Command: []string{program}, Folder: p.folder, StateFolder: state, Access: access,
		Env: w.home.Env(), Sandbox: []string{self, "probe-sandbox"}, Prompt: job.Message{ID: "8d5a3f0e-0000-4000-8000-000000000000", Text: "play script:" + script},
	})
	if err != nil {
		return nil, err
	}
	defer run.Close(context.WithoutCancel(ctx)) //nolint:errcheck // Close of the home kills what is left
	asked = map[string]bool{}
	for {
		select {
		case event, open := <-run.Events():
			switch e := event.(type) {
			case job.Asked:
				tokens := target.FindAllString(e.Question.Subject+string(e.Question.Input)+e.Question.Diff, -1)
				if len(tokens) > 0 {
					asked[tokens[0]] = true
				}
				allow := access != job.AccessAsk || e.Question.Tool == "read" || len(tokens) == 0
				go run.Answer(ctx, job.Answer{Question: e.Question.ID, Allow: allow, Reason: "no"}) //nolint:errcheck // the turn's end tells
			case job.TurnEnded:
				if e.Why != job.EndAnswer {
					return nil, fmt.Errorf("%s ended with %s: %s", script, e.Why, e.Message)
				}
				return asked, nil
			}
			if !open {
				return nil, fmt.Errorf("%s ended without a word", script)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TestJOB_13_AccessMatrix tries everything with every kind under every access. The
// table is what the tested versions do; a cell that changes is named.
func TestJOB_13_AccessMatrix(t *testing.T) {
	testkit.Long(t, "every action is tried with every CLI under every access")
	w := newWorld(t)
	t.Setenv("HOME", w.home.Dir)
	t.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
	modes := []job.Access{job.AccessRead, job.AccessAsk, job.AccessEdit}
	kinds := []string{"claude", "codex", "opencode"}
	var (
		mu    sync.Mutex
		found = map[string]map[string]string{} // by column, then by action
		tasks sync.WaitGroup
	)
	for _, kind := range kinds {
		var places []*place
		for _, access := range modes {
			places = append(places, w.newPlace(kind, access))
		}
		tasks.Go(func() {
			for i, access := range modes {
				cells, err := w.cells(soon(t), places[i], access)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				found[kind+" "+string(access)] = cells
				mu.Unlock()
			}
		})
	}
	tasks.Wait()
	var columns []string
	for _, kind := range kinds {
		for _, access := range modes {
			columns = append(columns, kind+" "+string(access))
		}
	}
	table := accessTable(columns, found)
	golden := filepath.Join("testdata", "access.txt")
	want, err := os.ReadFile(golden)
	must(t, err)
	before := readAccessTable(string(want))
	for _, a := range actions() {
		for _, column := range columns {
			if got := found[column][a.name]; got != before[column][a.name] {
				t.Errorf("%s: %s: it was %q by the table, now it is %q", column, a.name, before[column][a.name], got)
			}
		}
	}
	if t.Failed() {
		t.Logf("the table would be\n%s", table)
	}
}

func accessTable(columns []string, found map[string]map[string]string) string {
	var b strings.Builder
	row := func(name string, cell func(column string) string) {
		fmt.Fprintf(&b, "%-36s", name)
		for _, column := range columns {
			fmt.Fprintf(&b, "| %-14s", cell(column))
		}
		b.WriteString("\n")
	}
	row("", func(column string) string { return column })
	for _, a := range actions() {
		row(a.name, func(column string) string { return found[column][a.name] })
	}
	return b.String()
}

func readAccessTable(text string) map[string]map[string]string {
	cells := map[string]map[string]string{}
	var columns []string
	for line := range strings.Lines(text) {
		parts := strings.Split(line, "|")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		if columns == nil {
			columns = parts[1:]
			continue
		}
		for i, column := range columns {
			if cells[column] == nil {
				cells[column] = map[string]string{}
			}
			if i+1 < len(parts) {
				cells[column][parts[0]] = parts[i+1]
			}
		}
	}
	return cells
}
