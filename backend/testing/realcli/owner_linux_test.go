package realcli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// ownerLabel stands before the owner's words in codex's queue (CHT-04).
const ownerLabel = "[From your user, the owner, through the Bridge dashboard]\n\n"

// words is what the owner's page posts to a session (CHT-01).
type words struct {
	Body   string `json:"body"`
	Child  string `json:"child,omitempty"`
	Target string `json:"target,omitempty"`
}

// outcome is the answer (CHT-02).
type outcome struct {
	Status    int     `json:"-"`
	State     string  `json:"state"`
	Transport string  `json:"transport"`
	Receipt   *string `json:"receipt"`
	Detail    string  `json:"detail"`
	Error     string  `json:"error"`
}

// write posts the owner's words as the page does, to a session by its exact
// name.
func (w *world) write(name string, said words) outcome {
	w.Helper()
	body, err := json.Marshal(said)
	must(w.T, err)
	path := w.page.base + "/api/sessions/" + url.PathEscape(name) + "/message"
	r, err := http.NewRequestWithContext(soon(w.T), http.MethodPost, path, bytes.NewReader(body))
	must(w.T, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-bridge", "1")
	response, err := w.page.client.Do(r)
	must(w.T, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	must(w.T, err)
	answer := outcome{Status: response.StatusCode}
	if err := json.Unmarshal(raw, &answer); err != nil {
		w.Fatalf("POST %s answered %s %q: %v", path, response.Status, raw, err)
	}
	w.Logf("the owner wrote %d bytes to %s: %d %s %s: %s%s", len(said.Body), name, answer.Status, answer.State, answer.Transport, answer.Detail, answer.Error)
	return answer
}

// expect checks an answer's state, transport and whether it has a receipt.
func (w *world) expect(got outcome, state, transport string, receipt bool) {
	w.Helper()
	if got.Status != http.StatusOK || got.State != state || got.Transport != transport || (got.Receipt != nil) != receipt || got.Detail == "" {
		w.Errorf("the answer is %+v; want %s by %s, receipt %v, and a detail", got, state, transport, receipt)
	}
}

// arrives waits for a main session's request that holds the text and logs how
// long it took.
func (w *world) arrives(since time.Time, what string, fits func(scripted.Request) bool) scripted.Request {
	w.Helper()
	r := w.request(what, fits)
	w.Logf("%s: after %.1f s", what, time.Since(since).Seconds())
	return r
}

// holds finds the first request of a main session that shows the text.
func holds(text string) func(scripted.Request) bool {
	return func(r scripted.Request) bool { return !r.Aux && !r.Child() && r.Count(text) > 0 }
}

// prompts counts the user messages of a request that are exactly the text.
func prompts(r scripted.Request, text string) int {
	count := 0
	for _, item := range r.Items {
		if item.Role == "user" && item.Text == text {
			count++
		}
	}
	return count
}

// idle waits until the page shows the session idle.
func (w *world) idle(name string) {
	w.Helper()
	w.shown(name+" to be idle", func(s state) bool { return s.peer(name).State == "idle" })
}

// consumed waits until the page shows the message with the text as consumed.
func (w *world) consumed(text string) message {
	w.Helper()
	s := w.shown("the message to be consumed: "+text[:min(len(text), 80)], func(s state) bool { return s.message(text).State == "consumed" })
	return s.message(text)
}

// afterwards plays one more turn in the session and returns its request: all
// that the session was ever shown.
func (w *world) afterwards(session prompter, script string) scripted.Request {
	w.Helper()
	w.model.Script(script, scripted.Say("seen"))
	w.prompt(session, script)
	return w.request("the turn "+script, asks(script, 0))
}

// odd are texts that a shell, a parser or a terminal would change. What may stand anywhere in a
// text is in one of them: each text takes a turn of an agent.
var odd = []struct{ name, text string }{
	{
		"quotes, $(), backticks, newlines, tabs, emoji and other scripts",
		"say \"it's\" $(echo no) `echo no` ${HOME} \\n \\ %s && ; | > <b>&amp;</b> !! * ~ #\n" +
			"one\n\ttwo\n\n  three  four\n- five\n" +
			"👩‍👩‍👧‍👦 🇩🇪 naïve Ωμέγα 日本語 עברית é e\u0301",
	},
	{"what looks like an option", "--help --resume -- -x"},
	{"white space at the ends", "  indented, and blank lines after\n\n"},
	{"32,000 characters", long(32_000)},
}

// long is a text of so many characters whose every part differs.
func long(chars int) string {
	var b strings.Builder
	for b.Len() < 4*chars {
		for _, word := range []string{"wörd", "'q'", "\"Q\"", "$(x)", "`y`", "🙂", "\n"} {
			b.WriteString(word)
			b.WriteString(strings.Repeat("i", b.Len()%7))
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(string([]rune(b.String())[:chars-1]), " \n") + "."
}

// TestOwnerReachesCodex: with its background server, which is codex's default.
// Without it codex takes up to 10 seconds more, as TestOwnerAndABrokenCodex sees.
func TestOwnerReachesCodex(t *testing.T) {
	w := newWorld(t, "p")
	must(t, w.home.UseCodexDaemon())
	w.install("codex")
	codex := w.open("codex", "p", "›", "codex")
	w.meet(codex, "codex-p")

	w.step("CHT-02 CHT-04 idle: the text comes as a prompt within seconds", func(w *world) {
		const text = "Which port does the server use?"
		since := time.Now()
		w.expect(w.write("codex-p", words{Body: text}), "queued", "native-prompt", false)
		r := w.arrives(since, "the owner's words at an idle codex", holds(text))
		if got := prompts(r, ownerLabel+text); got != 1 {
			w.Errorf("it came %d times as a prompt of its own: %v", got, r)
		}
		w.consumed(text)
		w.idle("codex-p")
	})

	w.step("CHT-15 busy: it comes after the turn, not in it", func(w *world) {
		const text = "And which protocol?"
		w.model.Script("busy", codexShell.After("busy-steps"), codexShell.After("busy-goes-on"), scripted.Say("worked").After("busy-ends"))
		w.prompt(codex, "busy")
		must(w.T, w.model.AtGate(soon(w.T), "busy-steps"))
		w.expect(w.write("codex-p", words{Body: text}), "queued", "native-prompt", false)
		w.model.Open("busy-steps")
		must(w.T, w.model.AtGate(soon(w.T), "busy-goes-on"))
		s := w.shown("codex to be busy", func(s state) bool { return s.peer("codex-p").State == "busy" })
		if got := s.message(text).to("codex-p").reached(); got != "accepted durable handed" {
			w.Errorf("activity of the turn before it brought the queued words to the stages %q", got)
		}
		w.model.Open("busy-goes-on")
		must(w.T, w.model.AtGate(soon(w.T), "busy-ends"))
		if got := w.request("the turn's last step", asks("busy", 2)); got.Count(text) != 0 {
			w.Errorf("it was put into the running turn: %v", got)
		}
		since := time.Now()
		w.model.Open("busy-ends")
		r := w.arrives(since, "the owner's words after the turn", holds(text))
		if got := prompts(r, ownerLabel+text); got != 1 {
			w.Errorf("it came %d times as a prompt of its own: %v", got, r)
		}
		w.consumed(text)
		w.idle("codex-p")
	})

	for _, tt := range odd {
		w.step("CHT-04 byte for byte: "+tt.name, func(w *world) {
			before := len(w.model.Requests())
			since := time.Now()
			w.expect(w.write("codex-p", words{Body: tt.text}), "queued", "native-prompt", false)
			r := w.arrives(since, "the next turn", func(r scripted.Request) bool { return !r.Aux && r.Number > before })
			if got := prompts(r, ownerLabel+tt.text); got != 1 {
				last := slices.IndexFunc(r.Items, func(i scripted.Item) bool { return strings.Contains(i.Text, tt.text[:3]) })
				w.Errorf("it came %d times as it was written; the last item: %q", got, r.Items[max(last, 0)])
			}
			w.consumed(tt.text)
			w.idle("codex-p")
		})
	}

	w.step("CHT-06 each text came once", func(w *world) {
		r := w.afterwards(codex, "look-back")
		for _, tt := range odd {
			if got := prompts(r, ownerLabel+tt.text); got != 1 {
				w.Errorf("%d copies of %.80q", got, tt.text)
			}
		}
		if got := strings.Count(r.Text(), ownerLabel); got != len(odd)+2 {
			w.Errorf("the owner wrote %d times, codex was told %d times", len(odd)+2, got)
		}
		w.idle("codex-p")
	})

	w.step("CHT-18 ordinary mail wakes an idle codex once and is shown once", func(w *world) {
		const first, second = "The tests are red.", "The tests are green again."
		const wake = "Mail from Bridge has arrived for you."
		since := time.Now()
		w.bridge("send", "codex-p", first)
		w.bridge("send", "codex-p", second)
		r := w.arrives(since, "the wake of an idle codex", holds(wake))
		if a, b := shows(r, first), shows(r, second); a != 1 || b != 1 {
			w.Errorf("the woken turn shows the mail %d and %d times", a, b)
		}
		w.consumed(first)
		w.consumed(second)
		w.idle("codex-p")
		r = w.afterwards(codex, "after-wake")
		if wakes, a, b := r.Count(wake), shows(r, first), shows(r, second); wakes != 1 || a != 1 || b != 1 {
			w.Errorf("%d wakes; the mail was shown %d and %d times", wakes, a, b)
		}
	})
}

// receipt fetches what became of an owner's message (CHT-09).
func (w *world) receipt(id *string) string {
	w.Helper()
	if id == nil {
		w.Fatal("there is no receipt")
	}
	response := w.page.get(w.T, soon(w.T), "/api/chat-delivery/"+*id)
	defer response.Body.Close()
	var answer struct{ State string }
	must(w.T, json.NewDecoder(response.Body).Decode(&answer))
	return answer.State
}

// waiting counts the processes that wait in the background to wake a claude,
// by role.
func (w *world) waiting() (first, standby int) {
	w.Helper()
	for _, pid := range w.home.Processes() {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // it has ended
		}
		argv := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
		switch {
		case filepath.Base(argv[0]) != "bridge-hook":
		case slices.Contains(argv, "WakeStandby"):
			standby++
		case slices.Contains(argv, "Wake"):
			first++
		}
	}
	return first, standby
}

// waitsOnce waits until exactly one hook of each role waits.
func (w *world) waitsOnce() {
	w.Helper()
	ctx := soon(w.T)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		first, standby := w.waiting()
		if first == 1 && standby == 1 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("%d wake hooks and %d standbys wait, want one of each", first, standby)
		}
	}
}

// TestOwnerReachesClaude: without Bridge's mod, as an older claude is reached.
func TestOwnerReachesClaude(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.withoutMod()
	claude := w.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	w.meet(claude, "claude-p")

	w.step("CHT-03 idle: the waiting hook starts a turn with it", func(w *world) {
		const text = "Which port does the server use?"
		w.waitsOnce()
		since := time.Now()
		answer := w.write("claude-p", words{Body: text})
		w.expect(answer, "queued", "bridge", true)
		r := w.arrives(since, "the owner's words at an idle claude", holds(text))
		if got := shows(r, text); got != 1 || r.Count(text) != 1 {
			w.Errorf("it was shown %d times in an envelope, %d times in all", got, r.Count(text))
		}
		if !strings.Contains(r.Text(), "Your user wrote this in the Bridge dashboard.") {
			w.Error("CHT-14: it is not presented as the owner's")
		}
		if got := w.consumed(text).to("claude-p").reached(); got != "accepted durable woken handed consumed" {
			w.Errorf("it reached the stages %q", got)
		}
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("CHT-09: consumed, the receipt says %s", got)
		}
		w.idle("claude-p")
		w.waitsOnce()
	})

	w.step("CHT-03 CHT-09 CHT-15 busy: it is handed over at the next tool call", func(w *world) {
		const text = "And which protocol?"
		w.model.Script("busy", claudeShell.After("busy-steps"), claudeShell.After("busy-goes-on"), scripted.Say("worked"))
		w.prompt(claude, "busy")
		must(w.T, w.model.AtGate(soon(w.T), "busy-steps"))
		w.shown("claude to be busy", func(s state) bool { return s.peer("claude-p").State == "busy" })
		answer := w.write("claude-p", words{Body: text})
		w.expect(answer, "queued", "bridge", true)
		if got := w.receipt(answer.Receipt); got != "queued" {
			w.Errorf("before any step the receipt says %s", got)
		}
		w.model.Open("busy-steps")
		must(w.T, w.model.AtGate(soon(w.T), "busy-goes-on"))
		if got := w.request("the next step", asks("busy", 1)); shows(got, text) != 1 {
			w.Errorf("the next step shows it %d times", shows(got, text))
		}
		if got := w.receipt(answer.Receipt); got != "queued" {
			w.Errorf("handed over and nothing done since, the receipt says %s", got)
		}
		w.model.Open("busy-goes-on")
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("consumed, the receipt says %s", got)
		}
		w.idle("claude-p")
	})

	w.step("CHT-03 a second turn leaves one waiting hook of each role", func(w *world) { w.waitsOnce() })

	w.step("CHT-03 mail of a hook's full length arrives whole", func(w *world) {
		for _, letters := range []string{"a", "é"} {
			body := strings.Repeat(letters, 8_600/len(letters)) + "."
			since := time.Now()
			w.write("claude-p", words{Body: body})
			r := w.arrives(since, "long words at an idle claude", holds(letters+letters+letters+"."))
			if got := shows(r, body); got != 1 {
				w.Errorf("the woken claude was shown the whole text %d times", got)
			}
			w.consumed(body)
			w.idle("claude-p")
		}
		body := strings.Repeat("b", 8_600) + "."
		w.model.Script("long", claudeShell.After("long-steps"), scripted.Say("read"))
		w.prompt(claude, "long")
		must(w.T, w.model.AtGate(soon(w.T), "long-steps"))
		w.write("claude-p", words{Body: body})
		w.model.Open("long-steps")
		if got := shows(w.request("the next step", asks("long", 1)), body); got != 1 {
			w.Errorf("a tool's hook showed the whole text %d times", got)
		}
		w.consumed(body)
		w.idle("claude-p")
	})

	w.step("CHT-03 words too long for a hook wake it, too, and are told of once", func(w *world) {
		const told = "A long message (20000 characters"
		w.waitsOnce()
		since := time.Now()
		w.write("claude-p", words{Body: strings.Repeat("c", 20_000)})
		w.arrives(since, "word of long mail at an idle claude", holds(told))
		w.idle("claude-p")
		if got := w.afterwards(claude, "after-the-long").Count(told); got != 1 {
			w.Errorf("it was told of %d times", got)
		}
		w.idle("claude-p")
		w.waitsOnce()
	})

	w.step("CHT-03 after /clear it is still reached, and by one hook", func(w *world) {
		const text = "Are you still there?"
		must(w.T, claude.Type("/clear"))
		must(w.T, claude.Until(soon(w.T), "/clear", func(screen string) bool { return strings.Contains(screen, "/clear") }))
		before := w.peer("claude-p").SessionID
		must(w.T, claude.Type(scripted.Return))
		w.shown("the new conversation", func(s state) bool { p := s.peer("claude-p"); return p.SessionID != before && p.State == "idle" })
		since := time.Now()
		answer := w.write("claude-p", words{Body: text})
		r := w.arrives(since, "the owner's words at a claude that was cleared", holds(text))
		if got := shows(r, text); got != 1 {
			w.Errorf("it was shown %d times", got)
		}
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("consumed, the receipt says %s", got)
		}
		w.idle("claude-p")
		w.waitsOnce()
	})

	w.step("CHT-06 nothing is shown twice", func(w *world) {
		if got := shows(w.afterwards(claude, "look-back"), "Are you still there?"); got != 1 {
			w.Errorf("it was shown %d times", got)
		}
	})

	// It comes last, for claude puts the broken-off prompt back into its input.
	w.step("CHT-03 a turn that a person broke off does not hold it up", func(w *world) {
		testkit.Long(w.T, "claude tells of it late")
		const text = "Never mind, what about the tests?"
		w.model.Script("broken-off", claudeShell.After("never-comes"), scripted.Say("worked"))
		w.prompt(claude, "broken-off")
		must(w.T, w.model.AtGate(soon(w.T), "never-comes"))
		w.shown("claude to be busy", func(s state) bool { return s.peer("claude-p").State == "busy" })
		must(w.T, claude.Type(scripted.Escape))
		since := time.Now()
		answer := w.write("claude-p", words{Body: text})
		r := w.arrives(since, "the owner's words after a broken-off turn", holds(text))
		if got := shows(r, text); got != 1 {
			w.Errorf("it was shown %d times", got)
		}
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("consumed, the receipt says %s", got)
		}
		w.model.Open("never-comes")
		w.idle("claude-p")
	})
}

// peer is a live session as the page shows it now.
func (w *world) peer(name string) peer {
	w.Helper()
	s, _ := w.page.state(w.T, soon(w.T))
	return s.peer(name)
}

// TestHeadlessClaudeEnds: the hooks that wait do not keep a run without a
// person from ending.
func TestHeadlessClaudeEnds(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	w.model.Script("short", claudeShell, scripted.Say("all-said"))
	since := time.Now()
	calls := filepath.Join(w.home.Root, "mod-calls")
	noting := filepath.Join(w.home.Bin, "notes-mod")
	must(t, testkit.WriteProgram(noting, []byte("#!/bin/sh\necho called >>"+calls+"\n"), 0o700))
	w.changeModule(func(module string) string {
		return strings.Replace(module, `["`+filepath.Join(w.home.Bin, "bridge")+`"`, `["`+noting+`"`, 1)
	})
	out, err := w.home.Claude(soon(t), w.home.Project("p"), "play script:short", "--allowedTools", "Bash")
	must(t, err)
	if _, err := os.Stat(calls); !os.IsNotExist(err) {
		t.Errorf("CHT-20: the mod started its program though nobody sits there (%v)", err)
	}
	t.Logf("claude -p took %.1f s", time.Since(since).Seconds())
	if !strings.Contains(out, "all-said") {
		t.Errorf("the answer is not in the output:\n%s", out)
	}
	if first, standby := w.waiting(); first+standby > 0 {
		t.Errorf("CHT-03: %d wake hooks and %d standbys wait for nobody", first, standby)
	}
}

// TestOwnerReachesOpenCode: the plugin carries the owner's words.
func TestOwnerReachesOpenCode(t *testing.T) {
	w := newWorld(t, "p")
	w.install("opencode")
	opencode := w.openOpenCode("opencode", "p")
	w.meet(opencode, "opencode-p")

	w.step("CHT-07 idle: the plugin starts a turn with it", func(w *world) {
		const text = "Which port does the server use?"
		since := time.Now()
		answer := w.write("opencode-p", words{Body: text})
		w.expect(answer, "queued", "bridge", true)
		r := w.arrives(since, "the owner's words at an idle opencode", holds(text))
		if got := shows(r, text); got != 1 || r.Count(text) != 1 {
			w.Errorf("it was shown %d times in an envelope, %d times in all", got, r.Count(text))
		}
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("CHT-09: consumed, the receipt says %s", got)
		}
		w.idle("opencode-p")
	})

	w.step("CHT-07 CHT-09 CHT-15 busy: it is stored and shown at the next step of the same turn", func(w *world) {
		const text = "And which protocol?"
		w.model.Script("busy", openCodeShell.After("busy-steps"), openCodeShell.After("busy-goes-on"), scripted.Say("worked"))
		w.prompt(opencode, "busy")
		must(w.T, w.model.AtGate(soon(w.T), "busy-steps"))
		w.shown("opencode to be busy", func(s state) bool { return s.peer("opencode-p").State == "busy" })
		answer := w.write("opencode-p", words{Body: text})
		w.expect(answer, "queued", "bridge", true)
		if got := w.receipt(answer.Receipt); got != "queued" {
			w.Errorf("before any step the receipt says %s", got)
		}
		w.model.Open("busy-steps")
		must(w.T, w.model.AtGate(soon(w.T), "busy-goes-on"))
		if got := w.request("the next step", asks("busy", 1)); shows(got, text) != 1 {
			w.Errorf("the next step shows it %d times", shows(got, text))
		}
		w.model.Open("busy-goes-on")
		w.consumed(text)
		if got := w.receipt(answer.Receipt); got != "delivered" {
			w.Errorf("consumed, the receipt says %s", got)
		}
		w.idle("opencode-p")
	})

	for _, tt := range odd {
		if strings.HasPrefix(tt.name, "32,000") {
			continue // too long to be shown by a hook: announced
		}
		w.step("CHT-07 byte for byte: "+tt.name, func(w *world) {
			w.write("opencode-p", words{Body: tt.text})
			r := w.request("the woken turn", holds(tt.text))
			if got := shows(r, tt.text); got != 1 {
				w.Errorf("it was shown %d times", got)
			}
			w.consumed(tt.text)
			w.idle("opencode-p")
		})
	}

	w.step("CHT-06 nothing is shown twice", func(w *world) {
		r := w.afterwards(opencode, "look-back")
		for _, text := range []string{"Which port does the server use?", "And which protocol?", odd[0].text, odd[1].text} {
			if got := shows(r, text); got != 1 {
				w.Errorf("%d copies of %q", got, text)
			}
		}
	})
}

// TestOwnerAndNativeChildren: a child is in its session's list, and what is not
// in it is refused. What the owner writes to one is said honestly.
func TestOwnerAndNativeChildren(t *testing.T) {
	for _, c := range sessionCases {
		t.Run("CHT-10 CHT-11 "+c.kind, func(t *testing.T) {
			const forChild, note = "You there, child, hurry.", "Tell the child to hurry."
			w := newWorld(t, "p")
			w.install(c.kind)
			session := c.open(w, c.kind)
			w.meet(session, c.name())
			w.model.Script("parent", c.child, c.shell.After("parent-steps"), c.shell.After("parent-goes-on"), scripted.Say("parent done"))
			w.model.Script("child", c.shell.After("child-steps"), scripted.Say("child done").After("child-ends"))
			w.prompt(session, "parent")
			must(t, w.model.AtGate(soon(t), "child-steps"))
			s := w.shown("the child", func(s state) bool { return len(s.peer(c.name()).Children) == 1 })
			child := s.peer(c.name()).Children[0]
			request := w.request("the child's request", func(r scripted.Request) bool { return r.Script == "child" && r.Child() && !r.Aux })
			if child.ID != request.Thread {
				t.Errorf("the list names %q, the child asks as %q", child.ID, request.Thread)
			}

			// Codex is asked, and refuses as long as another process has the child.
			direct := w.write(c.name(), words{Body: forChild, Child: child.ID})
			w.expect(direct, "not-supported", "parent", false)
			if !strings.Contains(direct.Detail, "parent "+c.name()) {
				t.Errorf("the detail does not offer the parent: %q", direct.Detail)
			}
			w.expect(w.write(c.name(), words{Body: note, Child: child.ID, Target: "parent"}), "queued", "parent", true)
			for what, forged := range map[string]words{
				"a child that nobody has":         {Body: "forged", Child: "01a1fbd9-b69e-7ea2-a5b6-000000000000"},
				"the session as its own child":    {Body: "forged", Child: s.peer(c.name()).SessionID},
				"a note about a stranger's child": {Body: "forged", Child: "stranger", Target: "parent"},
			} {
				if got := w.write(c.name(), forged); got.Status != http.StatusConflict {
					t.Errorf("CHT-13: %s is answered with %+v", what, got)
				}
			}

			w.model.Open("child-steps")
			must(t, w.model.AtGate(soon(t), "child-ends"))
			w.model.Open("child-ends")
			w.model.Open("parent-steps")
			must(t, w.model.AtGate(soon(t), "parent-goes-on"))
			step := w.request("the parent's next step", asks("parent", 2))
			if got := shows(step, note); got != 1 {
				t.Errorf("the parent was shown its note %d times", got)
			}
			if got := strings.Contains(step.Text(), child.ID); !got {
				t.Error("CHT-11: the note does not name the child")
			}
			w.model.Open("parent-goes-on")
			w.consumed(note)
			for _, r := range w.model.Requests() {
				if r.Count("forged")+r.Count(forChild) > 0 || r.Child() && shows(r, note) > 0 {
					t.Errorf("it was shown where it must not be: %v", r)
				}
			}
		})
	}
}

// TestHookTextArrivesWhole: the most that one hook may show comes to the model
// uncut, wherever the hook stands and whatever the letters weigh. A short run tries each
// letter with one kind, a long one with both.
func TestHookTextArrivesWhole(t *testing.T) {
	for i, c := range sessionCases[:2] {
		letters := []string{"a", "日", "é", "e-f "}
		if !testkit.IsLong() {
			letters = letters[2*i : 2*i+2]
		}
		t.Run("MSG-04 "+c.kind, func(t *testing.T) {
			w := newWorld(t, "p")
			w.install(c.kind)
			w.withoutMod() // the owner's words are to come by the hooks
			session := c.open(w, c.kind)
			w.meet(session, c.name())
			for i, letter := range letters {
				body := strings.Repeat(letter, 8_600/len(letter))
				script := fmt.Sprint("long-", i)
				w.model.Script(script, c.shell.After(script+"-steps"), scripted.Say("read").After(script+"-ends"))
				w.prompt(session, script)
				must(t, w.model.AtGate(soon(t), script+"-steps"))
				w.bridge("send", c.name(), body+"tool.")
				w.model.Open(script + "-steps")
				if got := shows(w.request("the step after the tool", asks(script, 1)), body+"tool."); got != 1 {
					t.Errorf("%q: the tool's hook showed the whole text %d times", letter, got)
				}
				must(t, w.model.AtGate(soon(t), script+"-ends"))
				w.bridge("send", c.name(), body+"stop.")
				w.model.Open(script + "-ends")
				if got := w.request("the turn to go on", asks(script, 2)).Count("\n" + body + "stop.\n"); got != 1 {
					t.Errorf("%q: the stop's hook showed the whole text %d times", letter, got)
				}
				w.idle(c.name())
			}
		})
	}
}

// brokenCodex answers `codex queue` as the file beside it says, and is the real
// codex for everything else.
const brokenCodex = `#!/bin/sh
[ "$1" = queue ] || exec %[1]s "$@"
case $(cat %[2]s) in
refuses) echo "Error: No active session found matching '$3'." >&2; exit 1;;
old) echo "error: unrecognized subcommand 'queue'" >&2; exit 2;;
hangs) exec sleep 600;;
takes-and-hangs) %[1]s "$@" >/dev/null; exec sleep 600;;
takes-and-dies) %[1]s "$@" >/dev/null; kill -9 $$;;
takes-and-fails) %[1]s "$@"; exit 1;;
takes-and-panics) %[1]s "$@" >/dev/null; echo "thread 'main' panicked at src/main.rs:1:1:" >&2; exit 101;;
loses-its-server) echo "Error: failed to queue session message: timed out waiting for the server" >&2; exit 1;;
fails-in-silence) exit 1;;
esac
`

type brokenCase struct {
	mode, state, transport, detail string
	receipt                        bool
	copies                         int // at the model
}

// TestOwnerAndABrokenCodex: whatever becomes of the queue command, the owner is
// told the truth and the session gets no second copy.
func TestOwnerAndABrokenCodex(t *testing.T) {
	testkit.Long(t, "a broken codex is waited for")
	w := newWorld(t, "p")
	w.install("codex")
	codex := w.open("codex", "p", "›", scripted.CodexCommand()...)
	w.meet(codex, "codex-p")
	must(t, w.page.stop())
	broken, mode := filepath.Join(w.home.Root, "broken-codex"), filepath.Join(w.home.Root, "mode")
	script := fmt.Sprintf(brokenCodex, filepath.Join(w.home.Bin, "codex"), mode)
	must(t, testkit.WriteProgram(broken, []byte(script), 0o700))
	w.home.More = append(w.home.More, "BRIDGE_CODEX_BIN="+broken)
	w.serve()
	w.shown("codex to be back", func(s state) bool { return s.peer("codex-p").SessionID != "" })

	cases := []brokenCase{
		{"hangs", "unconfirmed", "native-prompt", "not sent again", false, 0},
		{"takes-and-hangs", "unconfirmed", "native-prompt", "not sent again", false, 1},
		{"takes-and-dies", "unconfirmed", "native-prompt", "not sent again", false, 1},
		{"takes-and-fails", "unconfirmed", "native-prompt", "not sent again", false, 1},
		{"takes-and-panics", "unconfirmed", "native-prompt", "not sent again", false, 1},
		{"loses-its-server", "unconfirmed", "native-prompt", "timed out waiting for the server", false, 0},
		{"fails-in-silence", "unconfirmed", "native-prompt", "it said nothing", false, 0},
		{"refuses", "queued", "bridge", "codex knows no session of this id", true, 1},
		{"old", "queued", "bridge", "too old to know the command `queue`", true, 1},
	}
	text := func(mode string) string { return "What does a codex do that " + mode + "?" }
	if !testkit.IsLong() { // Bridge waits for each of these ten seconds, for what hangs as long as it ever does
		cases = slices.DeleteFunc(cases, func(c brokenCase) bool {
			return strings.Contains(c.mode, "hangs") || c.mode == "takes-and-fails" || c.mode == "takes-and-panics"
		})
	}
	for _, c := range cases {
		w.step("CHT-05 CHT-06 CHT-19 a codex that "+c.mode, func(w *world) {
			must(w.T, os.WriteFile(mode, []byte(c.mode), 0o600))
			answer := w.write("codex-p", words{Body: text(c.mode)})
			w.expect(answer, c.state, c.transport, c.receipt)
			if !strings.Contains(answer.Detail, c.detail) {
				w.Errorf("the detail %q does not say %q", answer.Detail, c.detail)
			}
			if c.transport == "native-prompt" && c.copies == 1 {
				w.request("the words that the queue took", holds(text(c.mode)))
				w.consumed(text(c.mode))
				w.idle("codex-p")
			}
		})
	}

	w.step("CHT-06 no second copy is seen by the model", func(w *world) {
		w.afterwards(codex, "next")
		w.idle("codex-p")
		last := w.afterwards(codex, "look-back")
		for _, c := range cases {
			if got := last.Count(text(c.mode)); got != c.copies {
				w.Errorf("a codex that %s: %d copies, want %d", c.mode, got, c.copies)
			}
		}
		for _, c := range cases {
			if c.transport == "bridge" {
				w.consumed(text(c.mode))
			}
		}
		s, _ := w.page.state(w.T, soon(w.T))
		if got := s.message(text("fails-in-silence")).to("codex-p").at("consumed"); got != 0 {
			w.Error("what was never seen is said to be consumed")
		}
	})
}
