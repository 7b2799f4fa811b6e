package realcli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// modFolder is where the product's mod lies in a home.
const modFolder = ".claude/skills/bridge"

// withoutMod takes the mod away, as for a claude that is too old for it.
func (w *world) withoutMod() {
	w.Helper()
	must(w.T, os.RemoveAll(filepath.Join(w.home.Dir, modFolder)))
}

// modThere waits until the session's page says that its mod is there.
func (w *world) modThere(name string) {
	w.Helper()
	w.shown("the mod of "+name, func(s state) bool { return s.peer(name).Transport == "mod" })
}

// modChildren are the processes by which claude's modules hear of the owner's words: each
// has one for its conversation.
func (w *world) modChildren() (pids []int) {
	for _, pid := range w.home.Processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if strings.Contains(string(line), "\x00plugin\x00claude\x00--session\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// entered checks that the request shows the text once, as the user's own prompt.
func (w *world) entered(r scripted.Request, text string) {
	w.Helper()
	if got := prompts(r, text); got != 1 || shows(r, text) != 0 {
		w.Errorf("the model was shown it %d times as a user's message and %d times as mail: %v", got, shows(r, text), r)
	}
}

// claudeAsks is an interactive claude that asks before it uses a tool of its own.
func claudeAsks(args ...string) []string {
	return append([]string{"claude", "--permission-mode", "manual", "--allowedTools", "mcp__bridge"}, args...)
}

// types types a line and waits until the screen shows it.
func (w *world) types(claude *scripted.Terminal, line string) {
	w.Helper()
	must(w.T, claude.Type(line))
	must(w.T, claude.Until(soon(w.T), line, has(line)))
}

// press presses a key, again while the screen does not show what is wanted: a
// claude may swallow one that comes too early.
func (w *world) press(claude *scripted.Terminal, key, what string, fits func(screen string) bool) {
	w.Helper()
	w.again(claude, 500*time.Millisecond, what, fits, func() { must(w.T, claude.Type(key)) })
}

// modeShown is the permission mode in claude's last lines.
var modeShown = regexp.MustCompile(`(\S+) (?:mode|edits) on`)

// mode presses shift+tab until claude shows the permission mode. It waits for the screen to
// show another mode before it presses again: a key too many would leave the mode again.
func (w *world) mode(claude *scripted.Terminal, want string) {
	w.Helper()
	mode := func(screen string) string {
		all := modeShown.FindAllStringSubmatch(screen, -1)
		if all == nil {
			return ""
		}
		return all[len(all)-1][1]
	}
	for range 8 { // claude has five modes
		before := mode(claude.Screen())
		if before == want {
			return
		}
		must(w.T, claude.Type(scripted.ShiftTab))
		must(w.T, claude.Until(soon(w.T), "another mode", func(screen string) bool { return mode(screen) != before }))
	}
	w.Fatalf("claude never shows the mode %s:\n%s", want, claude.Screen())
}

// again does something until the screen shows what is wanted, each time after a while.
func (w *world) again(claude *scripted.Terminal, every time.Duration, what string, fits func(screen string) bool, do func()) {
	w.Helper()
	for ctx := soon(w.T); ; {
		do()
		short, cancel := context.WithTimeout(ctx, every)
		err := claude.Until(short, what, fits)
		timedOut := short.Err() != nil
		cancel()
		if err == nil {
			return
		}
		if !timedOut || ctx.Err() != nil {
			w.Fatal(err)
		}
	}
}

// goes types a command of claude's own and waits for another conversation.
func (w *world) goes(claude *scripted.Terminal, name, command string) {
	w.Helper()
	before := w.peer(name).SessionID
	w.types(claude, command)
	must(w.T, claude.Type(scripted.Return))
	w.shown("another conversation after "+command, func(s state) bool {
		p := s.peer(name)
		return p.SessionID != before && p.State == "idle" && p.Transport == "mod"
	})
}

// enters writes the owner's words to an idle claude and sees them come once, as
// the user's own prompt.
func (w *world) enters(name, text string) scripted.Request {
	w.Helper()
	seen := len(w.model.Requests())
	since := time.Now()
	answer := w.write(name, words{Body: text})
	w.expect(answer, "queued", "bridge", true)
	r := w.arrives(since, fmt.Sprintf("%.40q at an idle claude", text), func(r scripted.Request) bool { return r.Number > seen && !r.Aux && prompts(r, text) > 0 })
	w.entered(r, text)
	w.done(name, text, answer)
	return r
}

// done waits until the words are consumed by a prompt and the session is idle.
func (w *world) done(name, text string, answer outcome) {
	w.Helper()
	if got := w.consumed(text).to(name).reached(); got != "accepted durable handed consumed" {
		w.Errorf("it reached the stages %q", got)
	}
	if got := w.receipt(answer.Receipt); got != "delivered" {
		w.Errorf("CHT-09: consumed, the receipt says %s", got)
	}
	w.idle(name)
}

// peerSends makes a session of the test's own say something.
func (w *world) peerSends(to, text string) {
	w.Helper()
	home, err := config.ResolveHome(filepath.Join(w.home.Dir, ".bridge"), func(string) string { return "" })
	must(w.T, err)
	token, err := home.ExistingToken()
	must(w.T, err)
	client, err := ipc.Dial(soon(w.T), ipc.Target{Socket: home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "test"})
	must(w.T, err)
	defer client.Close()
	_, err = client.Register(soon(w.T), api.Register{Kind: "codex", Name: "a-peer", Cwd: w.home.Project("p")})
	must(w.T, err)
	_, err = client.Send(soon(w.T), api.SendArgs{To: to, Body: text})
	must(w.T, err)
}

// TestClaudesModEntersTheOwnersWords: one claude through a working day.
func TestClaudesModEntersTheOwnersWords(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	claude := w.open("claude", "p", "❯", claudeAsks()...)
	first := w.meet(claude, "claude-p").SessionID
	w.modThere("claude-p")

	w.step("CHT-20 claude accepts the module", func(w *world) {
		out, err := w.home.Run(soon(w.T), w.home.Dir, "", "claude", "plugin", "validate", filepath.Join(w.home.Dir, modFolder))
		must(w.T, err)
		if !strings.Contains(out, "Validation passed") || strings.Contains(out, "✘ Validation") {
			w.Errorf("it says\n%s", out)
		}
	})

	w.step("CHT-03 CHT-20 idle: it is a prompt of the user, and the page says so", func(w *world) {
		if got := w.peer("claude-p").Detail; !strings.Contains(got, "enters your words as prompts of yours") || !strings.Contains(got, "no user input") {
			w.Errorf("the session's page says %q", got)
		}
		w.enters("claude-p", "Which port does the server use?")
	})

	for _, tt := range odd {
		w.step("CHT-20 byte for byte: "+tt.name, func(w *world) { w.enters("claude-p", tt.text) })
	}

	w.step("CHT-15 CHT-20 busy: it enters after the turn; a draft stays", func(w *world) {
		const text, draft = "And which protocol?", "a half-written thought"
		w.model.Script("busy", scripted.Say("worked").After("busy-ends"))
		w.prompt(claude, "busy")
		must(w.T, w.model.AtGate(soon(w.T), "busy-ends"))
		w.shown("claude to be busy", func(s state) bool { return s.peer("claude-p").State == "busy" })
		w.types(claude, draft)
		answer := w.write("claude-p", words{Body: text})
		if !strings.Contains(answer.Detail, "when the turn has ended") {
			w.Errorf("the answer says %q", answer.Detail)
		}
		if got := w.receipt(answer.Receipt); got != "queued" {
			w.Errorf("during the turn the receipt says %s", got)
		}
		w.model.Open("busy-ends")
		r := w.request("the words after the turn", holds(text))
		w.entered(r, text)
		if last := r.Items[len(r.Items)-1]; r.Count("a half-written") != 0 || r.Number == 0 {
			w.Errorf("the draft was sent along: %v", last)
		}
		w.done("claude-p", text, answer)
		must(w.T, claude.Until(soon(w.T), "the draft", func(screen string) bool { return strings.Contains(screen, draft) }))
		must(w.T, claude.Type(scripted.ControlU))
		must(w.T, claude.Until(soon(w.T), "an empty composer", func(screen string) bool { return !strings.Contains(screen, draft) }))
	})

	w.step("CHT-20 an open permission question is left alone", func(w *world) {
		const text = "Is it done?"
		touch := scripted.Call("Bash", map[string]any{"command": "touch made && echo shell-$((40+2))", "description": "make a file"})
		w.model.Script("asks", touch, scripted.Say("ran it"))
		w.prompt(claude, "asks")
		must(w.T, claude.Until(soon(w.T), "the question", func(screen string) bool { return strings.Contains(screen, "Do you want to proceed?") }))
		answer := w.write("claude-p", words{Body: text})
		if screen := claude.Screen(); !strings.Contains(screen, "Do you want to proceed?") {
			w.Errorf("the question is gone:\n%s", screen)
		}
		w.press(claude, scripted.Return, "no question", func(screen string) bool { return !strings.Contains(screen, "Do you want to proceed?") })
		r := w.request("the words after the turn", holds(text))
		w.entered(r, text)
		if r.Count("shell-42") != 1 {
			w.Errorf("the answer to the question was lost: %v", r)
		}
		w.done("claude-p", text, answer)
	})

	w.step("CHT-20 plan mode stays", func(w *world) {
		w.mode(claude, "plan")
		w.enters("claude-p", "What is the plan?")
		must(w.T, claude.Until(soon(w.T), "plan mode", has("plan mode on")))
		w.mode(claude, "manual")
	})

	w.step("CHT-20 what claude would run as a command comes as mail, and the answer says why", func(w *world) {
		const text = "/clear is what I would type"
		before := w.peer("claude-p").SessionID
		w.waitsOnce()
		answer := w.write("claude-p", words{Body: text})
		if !strings.Contains(answer.Detail, "begins with /") {
			w.Errorf("the answer says %q", answer.Detail)
		}
		r := w.request("the words by the wake hook", holds(text))
		if shows(r, text) != 1 || prompts(r, text) != 0 {
			w.Errorf("it is shown as mail %d times and as a prompt %d times", shows(r, text), prompts(r, text))
		}
		w.consumed(text)
		w.idle("claude-p")
		if got := w.peer("claude-p").SessionID; got != before {
			w.Error("it was run as a command")
		}
	})

	w.step("CHT-20 CHT-21 a peer's mail is never a prompt of the user, and the line tells of it", func(w *world) {
		const text = "The tests are red."
		w.waitsOnce()
		w.model.Script("listens", scripted.Say("heard").After("listens-ends"))
		w.prompt(claude, "listens")
		must(w.T, w.model.AtGate(soon(w.T), "listens-ends"))
		w.peerSends("claude-p", text)
		must(w.T, claude.Until(soon(w.T), "the line", func(screen string) bool { return strings.Contains(screen, "Bridge: 1 message from a-peer") }))
		w.model.Open("listens-ends")
		r := w.request("the peer's words", holds(text))
		if shows(r, text) != 1 || prompts(r, text) != 0 {
			w.Errorf("it is shown as mail %d times and as a prompt %d times", shows(r, text), prompts(r, text))
		}
		w.consumed(text)
		w.idle("claude-p")
		must(w.T, claude.Until(soon(w.T), "no line", func(screen string) bool { return !strings.Contains(screen, "Bridge: 1 message") }))
	})

	w.step("CHT-20 after a clear and a resume they enter the conversation that is there", func(w *world) {
		w.goes(claude, "claude-p", "/clear")
		if r := w.enters("claude-p", "Are you still there?"); r.Session == first || r.Session != w.peer("claude-p").SessionID {
			w.Errorf("after /clear they came into %s", r.Session)
		}
		w.goes(claude, "claude-p", "/resume "+first)
		if r := w.enters("claude-p", "And now?"); r.Session != first {
			w.Errorf("after /resume they came into %s, not into %s", r.Session, first)
		}
	})

	w.step("CHT-20 a module that is written anew goes on", func(w *world) {
		before := w.modChildren()
		w.again(claude, 5*time.Second, "the reload", has("bridge: reloaded"), func() { // claude was seen to overlook one
			w.changeModule(func(module string) string { return module + "// a newer one\n" })
		})
		// What the module of before is given in its last moment comes as mail.
		w.shown("the newer module's own child", func(state) bool {
			now := w.modChildren()
			return len(now) > 0 && !slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(before, pid) })
		})
		w.modThere("claude-p")
		w.enters("claude-p", "Did you notice?")
	})

	w.step("CHT-20 two sessions: each gets its own", func(w *world) {
		other := w.open("claude-2", "p", "❯", claudeAsks()...)
		w.meet(other, "claude-p-2")
		w.modThere("claude-p-2")
		r1, r2 := w.enters("claude-p", "for the first"), w.enters("claude-p-2", "for the second")
		if r1.Session == r2.Session || r1.Count("for the second")+r2.Count("for the first") != 0 {
			w.Errorf("they came into %s and %s", r1.Session, r2.Session)
		}
		w.types(other, "/exit")
		must(w.T, other.Type(scripted.Return))
		w.shown("the one that left to be gone", func(s state) bool { return s.peer("claude-p-2").ID == "" })
		w.enters("claude-p", "Are you still there?")
		must(w.T, other.Close(soon(w.T)))
	})

	w.step("CHT-20 nothing came twice", func(w *world) {
		r := w.afterwards(claude, "look-back")
		for _, text := range []string{"Which port does the server use?", "And which protocol?", "Is it done?", "What is the plan?", "And now?", "Did you notice?", odd[0].text, odd[2].text} {
			if got := prompts(r, text); got != 1 {
				w.Errorf("%d copies of %.60q", got, text)
			}
		}
	})
}
