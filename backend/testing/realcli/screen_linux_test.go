package realcli_test

import (
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// A terminal's name goes to the conversation that it begins, and the one that has left the
// screen is neither woken nor online (RWM-24).
func TestRWM_24_WhatNoTerminalShowsIsNotWoken(t *testing.T) {
	type starts struct {
		name     string
		session  sessionCase
		daemon   bool
		again    bool // a wait for the next prompt tells the new conversation
		samePeer bool // the new conversation keeps the peer id
	}
	for _, c := range []starts{
		{name: "codex", session: sessionCases[1], samePeer: true},
		{name: "codex with its background server", session: sessionCases[1], daemon: true},
		{name: "opencode", session: sessionCases[2], again: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.daemon {
				testkit.Long(t, "codex with its background server is tried")
			}
			w := newWorld(t, "p")
			if c.daemon {
				must(t, w.home.UseCodexDaemon())
			}
			kind := c.session.kind
			w.install(kind)
			var session session
			var terminal *scripted.Terminal
			if kind == "codex" {
				terminal = w.open("first", "p", "›", "codex")
				session = terminal
			} else {
				opencode := w.openOpenCode("first", "p")
				terminal, session = opencode.Terminal, opencode
			}
			name := c.session.name()
			before := w.meet(session, name)

			const early, late, gone = "For the one on the screen.", "For the one that left.", "For nobody."
			if kind == "codex" { // it refuses /new until its own turn has ended, which is after the last hook
				ended := func(screen string) bool { return has("Worked for")(screen) && !has("esc to interrupt")(screen) }
				must(t, terminal.Until(soon(t), "the end of the turn", ended))
			}
			w.types(terminal, "/new")
			must(t, terminal.Type(scripted.Return))
			seen := len(w.model.Requests())
			if !c.again {
				w.shown("the new conversation", func(s state) bool { return s.peer(name).Name == name && s.peer(name).SessionID == "" })
				w.bridge("send", name, early)
			}
			w.model.Script("second", c.session.shell, scripted.Say("hello"))
			w.prompt(session, "second")
			step := w.request("the new conversation's next step", asks("second", 1))
			if got := shows(step, early); !c.again && got != 1 {
				t.Errorf("the new conversation was shown its mail %d times", got)
			}
			after := w.shown("the new conversation, idle", func(s state) bool {
				p := s.peer(name)
				return p.SessionID != "" && p.SessionID != before.SessionID && p.State == "idle"
			})
			if got := after.peer(name); (got.ID == before.ID) != c.samePeer || len(after.Peers) != 1 {
				t.Errorf("the sessions are %+v", after.Peers)
			}
			if !c.samePeer {
				if said := w.bridge("send", before.ID, late); !strings.Contains(said, "when it is back") {
					t.Errorf("sent to the conversation that left: %s", said)
				}
			}
			w.bridge("send", name, "And once more.")
			w.shown("its mail to be consumed", func(s state) bool { return s.message("And once more.").State == "consumed" })

			w.types(terminal, "/exit")
			must(t, terminal.Type(scripted.Return))
			w.shown("no session", func(s state) bool { return len(s.Peers) == 0 })
			if said := w.bridge("send", name, gone); !strings.Contains(said, "when it is back") {
				t.Errorf("sent to a session that ended: %s", said)
			}
			for _, r := range w.model.Requests()[seen:] {
				if r.Session == before.SessionID || r.Count(late) > 0 || r.Count(gone) > 0 {
					t.Errorf("a conversation that no terminal shows was asked: %v", r)
				}
			}
		})
	}
}
