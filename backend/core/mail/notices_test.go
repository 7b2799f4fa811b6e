package mail_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
)

// nothing prefers no mail.
func nothing(mail.Delivery) bool { return false }

// noticeOf returns the notice of a decision as a session gets it.
func noticeOf(n decision.News) mail.Delivery {
	m := decision.Notice(n.Revision, "m-"+n.ID, decision.Target{ID: "p-1"})
	m.Body = n.Body()
	return mail.Delivery{Message: m}
}

// revision returns a decision with the id d-000007 for 7.
func revision(number int, topic, text string) decision.News {
	return decision.News{Revision: decision.Revision{
		ID: fmt.Sprintf("d-%06d", number), Topic: topic, Text: text, Scope: decision.AllSessions(), Author: bridge.Address{ID: "p-0", Name: "api", Agent: bridge.Codex}, Current: true, CreatedAt: int64(number),
	}}
}

func TestCTX_02_DecisionsAreOneListNewestFirst(t *testing.T) {
	const head = "Decisions pinned in Bridge, newest first. Those by your user are your user's word. The tool `decisions` lists what is in force."
	owned := revision(2, "tabs", "Use tabs.")
	owned.Author = bridge.OwnerAddress()
	replaced, project, named, withdrawn, notice, more := revision(3, "db", "PostgreSQL."), revision(4, "db", "a"), revision(5, "db", "b"), revision(6, "db", "c"), revision(7, "db", "d"), revision(8, "db", "e")
	replaced.Supersedes = new(string)
	project.Scope = decision.ProjectOf("/home/x/a, for b")
	named.Scope = decision.Scope{Sessions: []string{"web", "api"}}
	withdrawn.Withdrawn = true
	notice.Beside, more.Rest = &replaced.Revision, 3
	for _, tt := range []struct {
		name string
		news decision.News
		want string
	}{
		{"by a session", revision(1, "db", "SQLite."), `- #000001 "db", for all, by api: SQLite.`},
		{"by the owner", owned, `- #000002 "tabs", for all, by your user: Use tabs.`},
		{"that replaces one", replaced, `- #000003 "db" (it replaces the earlier one), for all, by api: PostgreSQL.`},
		{"of a project", project, `- #000004 "db", for this project, by api: a`},
		{"of named sessions", named, `- #000005 "db", for web, api, by api: b`},
		{"withdrawn", withdrawn, `- #000006 "db" withdrawn, for all, by api: c`},
		{"beside another one", notice, `- #000007 "db" (api decided on it at the same time: this one came later in the team's order and is in force, the other one is in the history), for all, by api: d`},
		{"with a number of others", more, "- #000008 \"db\", for all, by api: e\n  Bridge tells you the newest 20 decisions of other PCs. 3 older ones are in force here, too: the tool `decisions` lists them."},
	} {
		t.Run("CTX-02 "+tt.name, func(t *testing.T) {
			d := noticeOf(tt.news)
			p := mail.Present([]mail.Delivery{d}, nothing)
			if diff := cmp.Diff(head+"\n"+tt.want, p.Text); diff != "" || len(p.Shown) != 1 {
				t.Errorf("the text (-want +got), %d shown:\n%s", len(p.Shown), diff)
			}
			if !mail.HeldIn("before "+p.Text+" after", d.Message) || !mail.MayHold([]byte(p.Text), d.Message) {
				t.Error("a host that holds the list does not hold the decision")
			}
			if other := noticeOf(revision(9, "db", "SQLite.")); mail.HeldIn(p.Text, other.Message) {
				t.Error("a host that holds the list holds another revision")
			}
		})
	}
	t.Run("CTX-02 with mail", func(t *testing.T) {
		peer := mail.Delivery{Message: bridge.Message{ID: "m1", From: bridge.Address{Name: "bob", Agent: bridge.Codex}, ConversationID: "m1", Body: "hello"}}
		p := mail.Present([]mail.Delivery{noticeOf(revision(1, "a", "old")), peer, noticeOf(revision(2, "b", "new"))}, nothing)
		_, list, found := strings.Cut(p.Text, "</bridge-message>\n\n"+head+"\n")
		if want := "- #000002 \"b\", for all, by api: new\n- #000001 \"a\", for all, by api: old"; !found || list != want {
			t.Errorf("the text is\n%s", p.Text)
		}
	})
}

// A message that only looks like a notice stands in its envelope, below the trust note.
func TestCTX_02_OnlyTheBrokersNoticesAreInTheList(t *testing.T) {
	for name, change := range map[string]func(*bridge.Message){
		"another hop":          func(m *bridge.Message) { m.Hop = 99 },
		"an answer":            func(m *bridge.Message) { m.ReplyTo = "m-0" },
		"another conversation": func(m *bridge.Message) { m.ConversationID = "x-decision-1" },
		"another form":         func(m *bridge.Message) { m.Body = "Decided on db: SQLite." },
		"no topic":             func(m *bridge.Message) { m.Body = strings.Replace(m.Body, `"db"`, "db", 1) },
		"a head of two lines":  func(m *bridge.Message) { m.Body = strings.Replace(m.Body, `"db"`, "\"db\"\n", 1) },
	} {
		t.Run("CTX-02 "+name, func(t *testing.T) {
			d := noticeOf(revision(1, "db", "SQLite."))
			change(&d.Message)
			if p := mail.Present([]mail.Delivery{d}, nothing); strings.Contains(p.Text, "Decisions pinned") || !strings.Contains(p.Text, "<bridge-message ") || len(p.Shown) != 1 {
				t.Errorf("the text is\n%s", p.Text)
			}
		})
	}
}

// Only the entries' own lines start with a dash, whatever topics and texts say.
func TestCTX_02_NoTextImitatesAnEntry(t *testing.T) {
	pieces := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{
		"\n", "\r", "\r\n", "\u2028", "\u0085", "- #000001 ", `"db", for all, by your user: `, "<bridge-message>", "\n\nThe tool `decisions` ", ":\n\n", ", pinned for ", "<",
	}), rapid.String()), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		topic, text := strings.Join(pieces.Draw(t, "topic"), ""), strings.Join(pieces.Draw(t, "text"), "")
		p := mail.Present([]mail.Delivery{noticeOf(revision(1, topic, text))}, nothing)
		if !strings.Contains(p.Text, "Decisions pinned") {
			return // in an envelope, which has tests of its own
		}
		lines := strings.FieldsFunc(p.Text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
		for _, line := range lines[2:] {
			if !strings.HasPrefix(line, "  ") {
				t.Fatalf("the line %q stands like an entry", line)
			}
		}
		if strings.Contains(p.Text, "<bridge") {
			t.Fatalf("a tag is in\n%s", p.Text)
		}
	})
}

// TestCTX_02_MailCostsFewBytes holds the budgets, with four bytes for a token.
func TestCTX_02_MailCostsFewBytes(t *testing.T) {
	const id, other = "0192f3a1-7c3e-7b21-9f54-2d6f0c9b8e11", "0192f3a1-7c3e-7b21-9f54-2d6f0c9b8e12"
	m := bridge.Message{ID: id, From: bridge.Address{Name: "web-frontend", Agent: bridge.OpenCode}, ConversationID: id, Body: "hello", CreatedAt: 1750000000000}
	answer := m
	answer.ReplyTo, answer.ConversationID = other, other
	for name, m := range map[string]bridge.Message{"a message": m, "an answer": answer} {
		t.Run("CTX-02 "+name, func(t *testing.T) {
			p := mail.Present([]mail.Delivery{{Message: m}}, nothing)
			if envelope := len(p.Text) - len(m.Body); envelope > 4*70 {
				t.Errorf("the envelope has %d bytes:\n%s", envelope, p.Text)
			}
		})
	}
	t.Run("CTX-02 40 decisions", func(t *testing.T) {
		var unread []mail.Delivery
		for i := range 40 {
			unread = append(unread, noticeOf(revision(i, fmt.Sprint("topic number ", i), strings.Repeat("x", 200))))
		}
		size, rounds := 0, 0
		for len(unread) > 0 {
			p := mail.Present(unread, nothing)
			size, rounds = size+len(p.Text), rounds+1
			if len(p.Shown) == 0 || len(p.Text) > 10_000 {
				t.Fatalf("%d are shown in %d bytes", len(p.Shown), len(p.Text))
			}
			unread = unread[:len(unread)-len(p.Shown)] // the newest went first
		}
		if size > 4*2600 || rounds > 2 {
			t.Errorf("%d bytes in %d texts", size, rounds)
		}
	})
}

// A decision is told before mail that wakes nobody, and beside mail that fills a text.
func TestCTX_02_DecisionsHaveTheirPlace(t *testing.T) {
	message := func(id string, size int) mail.Delivery {
		return mail.Delivery{Message: bridge.Message{ID: id, From: bridge.Address{Name: "bob", Agent: bridge.Codex}, ConversationID: id, Body: strings.Repeat("x", size)}}
	}
	shown := func(p mail.Presentation) string {
		var ids []string
		for _, d := range p.Shown {
			ids = append(ids, d.ID)
		}
		return strings.Join(ids, " ")
	}
	wakes := func(d mail.Delivery) bool { return strings.HasPrefix(d.ID, "wakes") }
	for _, tt := range []struct {
		name   string
		unread []mail.Delivery
		want   string
	}{
		{"before the rest", []mail.Delivery{message("rest", 8870), noticeOf(revision(1, "db", "SQLite."))}, "m-d-000001"},
		{"beside a message that does not fit", []mail.Delivery{message("wakes-1", 5000), message("wakes-2", 5000), message("rest", 1), noticeOf(revision(1, "db", "SQLite."))}, "wakes-1 m-d-000001"},
		{"the newest first", []mail.Delivery{noticeOf(revision(1, "db", strings.Repeat("x", 5000))), noticeOf(revision(2, "db", strings.Repeat("x", 5000)))}, "m-d-000002"},
	} {
		t.Run("CTX-02 "+tt.name, func(t *testing.T) {
			if got := shown(mail.Present(tt.unread, wakes)); got != tt.want {
				t.Errorf("shown %q, want %q", got, tt.want)
			}
		})
	}
}
