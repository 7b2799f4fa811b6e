package realcli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/realcli"
)

// ownerLabel stands before the owner's words in codex's queue (CHT-04).
const ownerLabel = "[From your user, through the Bridge dashboard]\n\n"

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
func (w *world) arrives(since time.Time, what string, fits func(realcli.Request) bool) realcli.Request {
	w.Helper()
	r := w.request(what, fits)
	w.Logf("%s: after %.1f s", what, time.Since(since).Seconds())
	return r
}

// holds finds the first request of a main session that shows the text.
func holds(text string) func(realcli.Request) bool {
	return func(r realcli.Request) bool { return !r.Aux && !r.Child() && r.Count(text) > 0 }
}

// prompts counts the user messages of a request that are exactly the text.
func prompts(r realcli.Request, text string) int {
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
func (w *world) afterwards(session prompter, script string) realcli.Request {
	w.Helper()
	w.model.Script(script, realcli.Say("seen"))
	w.prompt(session, script)
	return w.request("the turn "+script, asks(script, 0))
}

// odd are texts that a shell, a parser or a terminal would change.
var odd = []struct{ name, text string }{
	{"quotes, $() and backticks", "say \"it's\" $(echo no) `echo no` ${HOME} \\n \\ %s && ; | > <b>&amp;</b> !! * ~ #"},
	{"newlines and tabs", "one\n\ttwo\n\n  three  four\n- five"},
	{"emoji and other scripts", "👩‍👩‍👧‍👦 🇩🇪 naïve Ωμέγα 日本語 עברית é e\u0301"},
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

func TestOwnerReachesCodex(t *testing.T) {
	w := newWorld(t, "p")
	w.install()
	codex := w.open("codex", "p", "›", realcli.CodexCommand()...)
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
		w.model.Script("busy", codexShell.After("busy-steps"), codexShell.After("busy-goes-on"), realcli.Say("worked").After("busy-ends"))
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
			r := w.arrives(since, "the next turn", func(r realcli.Request) bool { return !r.Aux && r.Number > before })
			if got := prompts(r, ownerLabel+tt.text); got != 1 {
				last := slices.IndexFunc(r.Items, func(i realcli.Item) bool { return strings.Contains(i.Text, tt.text[:3]) })
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
