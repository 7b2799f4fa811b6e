package realcli_test

import (
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// TestChildrenFromBefore: a native child that began before this broker was there
// is found in the CLI's own store, with its task and its state, and its end is
// shown.
func TestChildrenFromBefore(t *testing.T) {
	testkit.Long(t, "a child of each kind outlives two brokers")
	titles := map[string]string{"claude": "a child", "codex": "play script:child", "opencode": "a child"}
	for _, c := range sessionCases {
		t.Run("CHT-10 "+c.kind, func(t *testing.T) {
			w := newWorld(t, "p")
			w.install(c.kind)
			session := c.open(w, c.kind)
			before := w.meet(session, c.name())
			w.model.Script("parent", c.child, c.shell.After("parent-steps"), c.shell.After("parent-goes-on"), scripted.Say("parent done"))
			w.model.Script("child", c.shell.After("child-steps"), scripted.Say("child done").After("child-ends"))
			w.prompt(session, "parent")
			must(t, w.model.AtGate(soon(t), "child-steps"))
			request := w.request("the child's request", func(r scripted.Request) bool { return r.Script == "child" && r.Child() && !r.Aux })

			must(t, w.page.stop())
			w.serve()
			s := w.shown("the child", func(s state) bool { return len(s.peer(c.name()).Children) == 1 })
			found := s.peer(c.name()).Children[0]
			if found.ID != request.Thread || found.State != "busy" || !strings.Contains(found.Title, titles[c.kind]) {
				t.Errorf("the list has %+v, the child asks as %s", found, request.Thread)
			}
			if s.peer(c.name()).SessionID != before.SessionID {
				t.Errorf("it is under the session %s, want %s", s.peer(c.name()).SessionID, before.SessionID)
			}

			w.model.Open("child-steps")
			must(t, w.model.AtGate(soon(t), "child-ends"))
			w.model.Open("child-ends")
			w.model.Open("parent-steps")
			must(t, w.model.AtGate(soon(t), "parent-goes-on"))
			w.shown("the child's end", func(s state) bool {
				children := s.peer(c.name()).Children
				return len(children) == 1 && children[0].State == "done"
			})
			w.model.Open("parent-goes-on")
			w.idle(c.name())

			// Its own hooks are silent by now: what another broker shows is the store.
			must(t, w.page.stop())
			w.serve()
			w.shown("the ended child", func(s state) bool {
				children := s.peer(c.name()).Children
				return len(children) == 1 && children[0] == child{found.ID, found.Title, "done"}
			})
		})
	}
}
