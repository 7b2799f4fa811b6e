package realcli_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/agent/prove/scripted"
)

// No agent starts its MCP server again. The session stays on the list with its mail until
// its agent ends (RWM-25).
func TestRWM_25_ARealSessionWhoseServerEndedGetsItsMail(t *testing.T) {
	for _, c := range sessionCases[:2] { // opencode's plugin holds its sessions
		t.Run(c.kind, func(t *testing.T) {
			oneOfEach(t, c)
			const mail = "For one without tools."
			w := newWorld(t, "p")
			w.install(c.kind)
			w.withoutMod()
			session := c.open(w, c.kind)
			before := w.meet(session, c.name())

			for _, pid := range w.servers() {
				must(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			gone := w.shown("the loss of its server", func(s state) bool {
				return strings.Contains(s.peer(c.name()).Detail, "Its MCP server has ended")
			}).peer(c.name())
			if gone.ID != before.ID || gone.Transport != "hooks" {
				t.Errorf("it is shown as %+v", gone)
			}
			w.model.Script("works", c.shell.After("steps"), scripted.Say("done"))
			w.prompt(session, "works")
			must(t, w.model.AtGate(soon(t), "steps"))
			w.bridge("send", c.name(), mail)
			w.model.Open("steps")
			if got := shows(w.request("its next step", asks("works", 1)), mail); got != 1 {
				t.Errorf("it was shown its mail %d times", got)
			}
			w.shown("the mail to be consumed", func(s state) bool { return s.message(mail).State == "consumed" })

			if c.kind == "claude" { // as the session's page says
				claude := session.(*scripted.Terminal)
				w.types(claude, "/mcp")
				w.press(claude, scripted.Return, "its servers", has("bridge"))
				w.press(claude, scripted.Return, "what can be done", has("Reconnect"))
				must(t, claude.Type(scripted.Return))
				w.shown("its server to be back", func(s state) bool {
					return s.peer(c.name()).ID == before.ID && !strings.Contains(s.peer(c.name()).Detail, "has ended")
				})
			}
			must(t, session.Close(soon(t)))
			w.shown("the session to be gone", func(s state) bool { return s.peer(c.name()).ID == "" })
		})
	}
}

// servers returns the MCP servers of Bridge's that run in the home.
func (w *world) servers() (pids []int) {
	w.Helper()
	for _, pid := range w.home.Processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if strings.Contains(string(line), "\x00mcp\x00") || strings.HasPrefix(string(line), "bridge-mcp") {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		w.Fatal("no MCP server runs")
	}
	return pids
}
