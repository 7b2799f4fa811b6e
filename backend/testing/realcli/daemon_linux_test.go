package realcli_test

import (
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// TestOwnerReachesCodexesOfOneDaemon: codex's background server, which is its
// default, runs the sessions of all terminals in one process and looks at its
// queue at once.
func TestOwnerReachesCodexesOfOneDaemon(t *testing.T) {
	testkit.Long(t, "two codexes share a server, and one of them ends")
	w := newWorld(t, "p")
	must(t, w.home.UseCodexDaemon())
	w.install("codex")
	names := []string{"codex-p", "codex-p-2"}
	terminals := map[string]*scripted.Terminal{}
	for _, name := range names { // both wait for a prompt before either has one
		terminals[name] = w.open(name, "p", "›", "codex")
	}
	ids := map[string]string{}

	w.step("MSG-03 two sessions of one process are two", func(w *world) {
		for _, name := range names {
			ids[name] = w.meet(terminals[name], name).SessionID
		}
		for _, name := range names {
			if got := w.peer(name).SessionID; got == "" || got != ids[name] {
				w.Errorf("%s is the session %q, was %q", name, got, ids[name])
			}
		}
	})

	reach := func(w *world, round string) {
		for _, name := range names {
			text := "For " + name + ", " + round
			since := time.Now()
			w.expect(w.write(name, words{Body: text}), "queued", "native-prompt", false)
			r := w.arrives(since, "the owner's words at an idle "+name, holds(text))
			if r.Session != ids[name] || prompts(r, ownerLabel+text) != 1 {
				w.Errorf("the words for %s (%s) came to %v", name, ids[name], r)
			}
			w.consumed(text)
			w.idle(name)
		}
	}
	w.step("CHT-04 idle: each gets its own at once", func(w *world) { reach(w, "first") })

	w.step("MSG-03 a tool call tells whose a server is, whatever was guessed", func(w *world) {
		for _, name := range []string{names[1], names[0]} {
			w.model.Script("peers-"+name, scripted.Call(codexTool+"peers", map[string]any{}), scripted.Say("seen"))
			w.prompt(terminals[name], "peers-"+name)
			w.request("the answer of peers", asks("peers-"+name, 1))
			w.idle(name)
		}
		reach(w, "second")
	})

	w.step("MSG-03 another broker knows both before they do anything", func(w *world) {
		must(w.T, w.page.stop())
		w.serve()
		w.shown("both to be back", func(s state) bool {
			return s.peer(names[0]).SessionID == ids[names[0]] && s.peer(names[1]).SessionID == ids[names[1]]
		})
		reach(w, "third")
	})

	w.step("CHT-10 a child at work takes the owner's words after its turn", func(w *world) {
		const text = "You there, child, hurry."
		w.model.Script("parent", sessionCases[1].child, codexShell.After("parent-steps"), scripted.Say("parent done"))
		w.model.Script("child", codexShell.After("child-steps"), scripted.Say("child done"))
		w.prompt(terminals[names[0]], "parent")
		must(w.T, w.model.AtGate(soon(w.T), "child-steps"))
		s := w.shown("the child", func(s state) bool { return len(s.peer(names[0]).Children) == 1 })
		id := s.peer(names[0]).Children[0].ID
		w.expect(w.write(names[0], words{Body: text, Child: id}), "queued", "native-prompt", false)
		w.model.Open("child-steps")
		r := w.request("the words at the child", func(r scripted.Request) bool { return r.Child() && r.Count(text) > 0 })
		if r.Thread != id || prompts(r, ownerLabel+text) != 1 {
			w.Errorf("the words for %s came to %v", id, r)
		}
		w.model.Open("parent-steps")
		if m := w.consumed(text); m.To != names[0]+" (native child "+id+")" || m.to(names[0]).reached() != "accepted durable handed consumed" {
			w.Errorf("the history has %v", m)
		}
		w.idle(names[0])
	})

	w.step("MSG-03 one ends, the other stays", func(w *world) {
		must(w.T, terminals[names[0]].Close(soon(w.T)))
		const text = "For the one that stayed."
		w.write(names[1], words{Body: text})
		w.consumed(text)
	})
}
