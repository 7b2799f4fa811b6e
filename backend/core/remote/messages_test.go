package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
)

func TestRMT_21_AFrameOfMessagesSaysOneThing(t *testing.T) {
	list := func(text string, count int) string { return strings.TrimSuffix(strings.Repeat(text+",", count), ",") }
	receipt := func(stage string, at int) string {
		return fmt.Sprintf(`{"now":1,"receipts":[{"id":"m-1","news":1,"stages":[{"stage":%q,"at":%d}]}]}`, stage, at)
	}
	for _, tt := range []struct {
		name, frame string
		code        bridge.Code
	}{
		{"letters", `{"now":1,"letters":[{"id":"m-1"}]}`, ""},
		{"arrivals", `{"now":1,"arrivals":[{"id":"m-1"}]}`, ""},
		{"receipts", receipt("handed", 1), ""},
		{"what was noted", `{"now":1,"noted":[{"id":"m-1","news":1}]}`, ""},
		{"100 letters", `{"now":1,"letters":[` + list(`{}`, 100) + `]}`, ""},
		{"101 letters", `{"now":1,"letters":[` + list(`{}`, 101) + `]}`, bridge.TooLarge},
		{"200 arrivals", `{"now":1,"arrivals":[` + list(`{}`, 200) + `]}`, ""},
		{"201 arrivals", `{"now":1,"arrivals":[` + list(`{}`, 201) + `]}`, bridge.TooLarge},
		{"201 receipts", `{"now":1,"receipts":[` + list(`{}`, 201) + `]}`, bridge.TooLarge},
		{"201 that were noted", `{"now":1,"noted":[` + list(`{}`, 201) + `]}`, bridge.TooLarge},
		{"nothing", `{"now":1}`, bridge.Invalid},
		{"two things", `{"now":1,"letters":[{"id":"m-1"}],"noted":[{"id":"m-1"}]}`, bridge.Invalid},
		{"no time", `{"letters":[{"id":"m-1"}]}`, bridge.Invalid},
		{"a time before 1970", `{"now":-1,"letters":[{"id":"m-1"}]}`, bridge.Invalid},
		{"a stage that is not told", receipt("accepted", 1), bridge.Invalid},
		{"a stage without a time", receipt("handed", 0), bridge.Invalid},
		{"a member that nobody knows", `{"now":1,"letters":[{"id":"m-1","bin":"/bin/sh"}]}`, bridge.Invalid},
	} {
		if m, err := ParseMail([]byte(tt.frame)); bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %+v, %v; want %q", tt.name, m, err, tt.code)
		}
	}
}

func TestRMT_21_WordsOfAnotherPCAreCut(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	m, err := ParseMail([]byte(fmt.Sprintf(`{"now":1,"arrivals":[{"id":"m-1","error":{"code":"busy","message":%q}},{"id":"m-2"}]}`, long)))
	if err != nil || m.Arrivals[0].Error.Code != bridge.Busy || len(m.Arrivals[0].Error.Message) >= len(long) || m.Arrivals[0].Error.Message == "" || m.Arrivals[1].Error != nil {
		t.Errorf("%+v, %v", m.Arrivals, err)
	}
	m, err = ParseMail([]byte(fmt.Sprintf(`{"now":1,"receipts":[{"id":"m-1","news":1,"stages":[{"stage":"handed","at":1,"evidence":%q}]}]}`, long)))
	if err != nil || !strings.HasPrefix(long, strings.TrimSuffix(m.Receipts[0].Stages[0].Evidence, "…")) || len(m.Receipts[0].Stages[0].Evidence) > 2*maxEvidenceChars+3 {
		t.Errorf("%+v, %v", m.Receipts, err)
	}
}

func TestRMT_21_AFrameOfMessagesFitsTheLink(t *testing.T) {
	frame := func(body int) Mail {
		return Mail{Now: 1, Letters: []Letter{{ID: "m-1", Body: strings.Repeat("x", body)}}}
	}
	empty, err := EncodeMail(frame(0))
	if err != nil {
		t.Fatal(err)
	}
	for body, code := range map[int]bridge.Code{maxPayloadBytes - len(empty): "", maxPayloadBytes - len(empty) + 1: bridge.TooLarge} {
		data, err := EncodeMail(frame(body))
		if bridge.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	if got := (Mail{Now: 70}).Shift(100); got != 30 {
		t.Errorf("the other clock is %d behind", got)
	}
}

func letter() Letter {
	return Letter{ID: "m-1", To: "api", From: "web", Agent: bridge.Claude, ConversationID: "c-1", ReplyTo: "m-0", Hop: 3, Body: "hello", CreatedAt: 1000}
}

func TestRMT_21_ALetterIsChecked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Letter)
		code   bridge.Code
	}{
		{"right", func(*Letter) {}, ""},
		{"no answer", func(l *Letter) { l.ReplyTo = "" }, ""},
		{"the highest hop", func(l *Letter) { l.Hop = bridge.HighestMaxHops }, ""},
		{"hop 0", func(l *Letter) { l.Hop = 0 }, ""},
		{"the longest text", func(l *Letter) { l.Body = strings.Repeat("ä", bridge.MaxBodyChars) }, ""},
		{"a longer text", func(l *Letter) { l.Body = strings.Repeat("ä", bridge.MaxBodyChars+1) }, bridge.TooLarge},
		{"one hop more", func(l *Letter) { l.Hop = bridge.HighestMaxHops + 1 }, bridge.Invalid},
		{"hop -1", func(l *Letter) { l.Hop = -1 }, bridge.Invalid},
		{"no id", func(l *Letter) { l.ID = "" }, bridge.Invalid},
		{"nobody", func(l *Letter) { l.To = "" }, bridge.Invalid},
		{"no conversation", func(l *Letter) { l.ConversationID = "" }, bridge.Invalid},
		{"an id that is none", func(l *Letter) { l.ReplyTo = "a\nb" }, bridge.Invalid},
		{"a sender with a host", func(l *Letter) { l.From = "lab/web" }, bridge.Invalid},
	} {
		l := letter()
		tt.change(&l)
		if err := l.Check(); bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
		}
	}
}

func TestRMT_21_ALetterBecomesAMessageAndBack(t *testing.T) {
	stored := bridge.Message{
		ID: "m-1", From: bridge.Address{ID: "lab/web", Name: "lab/web", Agent: bridge.Claude}, To: "api",
		ConversationID: "c-1", ReplyTo: "m-0", Hop: 3, Body: "hello", CreatedAt: 1500,
	}
	with := func(change func(*bridge.Message)) bridge.Message {
		changed := stored
		change(&changed)
		return changed
	}
	for _, tt := range []struct {
		name            string
		change          func(*Letter)
		now, shift, hop int
		want            bridge.Message
	}{
		{"by this clock", func(*Letter) {}, 9000, 500, 0, stored},
		{"never later than now", func(*Letter) {}, 1200, 500, 0, with(func(m *bridge.Message) { m.CreatedAt = 1200 })},
		{"never at no time", func(*Letter) {}, 9000, -5000, 0, with(func(m *bridge.Message) { m.CreatedAt = 1 })},
		{"with the hop that it has here", func(*Letter) {}, 9000, 500, 5, with(func(m *bridge.Message) { m.Hop = 5 })},
		{"with the highest hop", func(*Letter) {}, 9000, 500, 1000, with(func(m *bridge.Message) { m.Hop = bridge.HighestMaxHops })},
		{"no word of the owner's", func(l *Letter) { l.Agent = bridge.Owner }, 9000, 500, 0, with(func(m *bridge.Message) { m.From.Agent = "" })},
		{"of an agent that nobody knows", func(l *Letter) { l.Agent = "other" }, 9000, 500, 0, with(func(m *bridge.Message) { m.From.Agent = "" })},
		{"no notice of a decision", func(l *Letter) { l.ConversationID, l.ReplyTo = "decision-d-1", "" }, 9000, 500, 0, with(func(m *bridge.Message) { m.ConversationID, m.ReplyTo = "m-1", "" })},
		{"an answer to such a notice", func(l *Letter) { l.ConversationID = "decision-d-1" }, 9000, 500, 0, with(func(m *bridge.Message) { m.ConversationID = "decision-d-1" })},
	} {
		l := letter()
		tt.change(&l)
		if diff := cmp.Diff(tt.want, l.Message("lab", int64(tt.now), int64(tt.shift), tt.hop)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	out := with(func(m *bridge.Message) {
		m.From, m.To, m.CreatedAt = bridge.Address{Name: "web", Agent: bridge.Claude}, "lab/api", 1000
	})
	if diff := cmp.Diff(letter(), LetterOf(out)); diff != "" {
		t.Error(diff)
	}
	out.From = bridge.OwnerAddress()
	if got := LetterOf(out); got.From != "owner" || got.Agent != "" {
		t.Errorf("of the owner: %+v", got)
	}
}

func TestRMT_21_WhyALetterWasNotStored(t *testing.T) {
	for _, tt := range []struct {
		err   error
		code  bridge.Code
		later bool
	}{
		{bridge.Errorf(bridge.NotFound, "no such session"), bridge.NotFound, false},
		{bridge.Errorf(bridge.Denied, "no"), bridge.Denied, false},
		{bridge.Errorf(bridge.Storage, "the disk is full"), bridge.Storage, true},
		{bridge.Errorf(bridge.Unavailable, "not now"), bridge.Unavailable, true},
		{bridge.Errorf(bridge.Busy, "not now"), bridge.Busy, true},
		{errors.New("a secret of this PC"), bridge.Internal, true},
	} {
		got := Answered("m-1", tt.err)
		if got.ID != "m-1" || got.Error == nil || got.Error.Code != tt.code || got.Later != tt.later || strings.Contains(got.Error.Message, "secret") {
			t.Errorf("%v: %+v, %+v", tt.err, got, got.Error)
		}
	}
	if got := Answered("m-1", nil); got != (Arrival{ID: "m-1"}) {
		t.Errorf("stored: %+v", got)
	}
}

const madeAt = 1_800_000_000_000

func decided() Decided {
	return Decided{ID: "d-1", Topic: "build", Text: "use make", Author: "web", Agent: bridge.Claude, CreatedAt: madeAt, SourceMessageID: "m-1"}
}

func TestHUB_06_ADecisionOfAnotherPCIsChecked(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	for _, tt := range []struct {
		name   string
		change func(*TeamDecided)
		code   bridge.Code
	}{
		{"right", func(*TeamDecided) {}, ""},
		{"after another", func(d *TeamDecided) { d.Follows = "d-0" }, ""},
		{"without a source", func(d *TeamDecided) { d.Decision.SourceMessageID = "" }, ""},
		{"a day ahead", func(d *TeamDecided) { d.Decision.CreatedAt = madeAt + day }, ""},
		{"a day and a millisecond ahead", func(d *TeamDecided) { d.Decision.CreatedAt = madeAt + day + 1 }, bridge.Invalid},
		{"at the first time", func(d *TeamDecided) { d.Decision.CreatedAt = 1 }, ""},
		{"at no time", func(d *TeamDecided) { d.Decision.CreatedAt = 0 }, bridge.Invalid},
		{"after what is no id", func(d *TeamDecided) { d.Follows = "a\nb" }, bridge.Invalid},
		{"a source that is no id", func(d *TeamDecided) { d.Decision.SourceMessageID = "a\nb" }, bridge.Invalid},
		{"no id", func(d *TeamDecided) { d.Decision.ID = "" }, bridge.Invalid},
		{"no topic", func(d *TeamDecided) { d.Decision.Topic = "" }, bridge.Invalid},
		{"a topic in capitals", func(d *TeamDecided) { d.Decision.Topic = "Build" }, bridge.Invalid},
		{"no text", func(d *TeamDecided) { d.Decision.Text = " " }, bridge.Invalid},
		{"an author with a host", func(d *TeamDecided) { d.Decision.Author = "lab/web" }, bridge.Invalid},
	} {
		d := TeamDecided{Decision: decided()}
		tt.change(&d)
		got, err := ParseTeamDecided(marshal(t, d), madeAt)
		if bridge.CodeOf(err) != tt.code || err == nil && got != d {
			t.Errorf("%s: %+v, %v; want %q", tt.name, got, err, tt.code)
		}
	}
	if _, err := ParseTeamDecided([]byte("{"), madeAt); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("no JSON: %v", err)
	}
}

func TestRMT_22_AFrameOfDecisionsSaysOneThing(t *testing.T) {
	item, place := decided(), &Cursor{}
	wrong := item
	wrong.Topic = ""
	many := func(n int) (list []Decided) {
		for range n {
			list = append(list, item)
		}
		return list
	}
	for _, tt := range []struct {
		name string
		of   Sync
		code bridge.Code
	}{
		{"a request", Sync{Kind: SyncRequest, Since: place}, ""},
		{"a request without a place", Sync{Kind: SyncRequest}, bridge.Invalid},
		{"a request with decisions", Sync{Kind: SyncRequest, Since: place, Decisions: many(1)}, bridge.Invalid},
		{"a request with a decision", Sync{Kind: SyncRequest, Since: place, Upsert: &item}, bridge.Invalid},
		{"a request with more", Sync{Kind: SyncRequest, Since: place, More: true}, bridge.Invalid},
		{"a state", Sync{Kind: SyncState, Decisions: many(1)}, ""},
		{"a state with more", Sync{Kind: SyncState, Decisions: many(1), More: true}, ""},
		{"an empty state", Sync{Kind: SyncState}, ""},
		{"an empty state with more", Sync{Kind: SyncState, More: true}, bridge.Invalid},
		{"a state with a place", Sync{Kind: SyncState, Since: place, Decisions: many(1)}, bridge.Invalid},
		{"a state with one beside", Sync{Kind: SyncState, Upsert: &item, Decisions: many(1)}, bridge.Invalid},
		{"25 decisions", Sync{Kind: SyncState, Decisions: many(25)}, ""},
		{"26 decisions", Sync{Kind: SyncState, Decisions: many(26)}, bridge.TooLarge},
		{"a wrong one among them", Sync{Kind: SyncState, Decisions: append(many(1), wrong)}, bridge.Invalid},
		{"one", Sync{Kind: SyncUpsert, Upsert: &item}, ""},
		{"a wrong one", Sync{Kind: SyncUpsert, Upsert: &wrong}, bridge.Invalid},
		{"none", Sync{Kind: SyncUpsert}, bridge.Invalid},
		{"one with a place", Sync{Kind: SyncUpsert, Upsert: &item, Since: place}, bridge.Invalid},
		{"one with others", Sync{Kind: SyncUpsert, Upsert: &item, Decisions: many(1)}, bridge.Invalid},
		{"one with more", Sync{Kind: SyncUpsert, Upsert: &item, More: true}, bridge.Invalid},
		{"another kind", Sync{Kind: "other", Since: place}, bridge.Invalid},
	} {
		got, err := ParseSync(marshal(t, tt.of), madeAt)
		if bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %+v, %v; want %q", tt.name, got, err, tt.code)
		}
		if diff := cmp.Diff(tt.of, got); err == nil && diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if _, err := ParseSync([]byte(`{"kind":"sync-request","since":{},"bin":1}`), madeAt); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("a member that nobody knows: %v", err)
	}
}

func TestRMT_22_DecisionsThatDoNotFitWaitForTheNextFrame(t *testing.T) {
	of := func(count, size int) Sync {
		s := Sync{Kind: SyncState}
		for range count {
			item := decided()
			item.Text = strings.Repeat("x", size)
			s.Decisions = append(s.Decisions, item)
		}
		return s
	}
	base := len(marshal(t, of(2, 0)))
	half := (MaxDecisionBytes - base) / 2
	odd := MaxDecisionBytes - base - 2*half
	exact := of(2, half)
	exact.Decisions[1].Text += strings.Repeat("x", odd)
	tooLong := of(2, half)
	tooLong.Decisions[1].Text += strings.Repeat("x", odd+1)
	for _, tt := range []struct {
		name  string
		of    Sync
		count int
		more  bool
	}{
		{"that fit", exact, 2, false},
		{"a byte too many", tooLong, 1, true},
		{"eight of which three fit", of(8, MaxDecisionBytes/3-500), 2, true},
		{"one that does not fit alone", of(1, MaxDecisionBytes), 1, false},
	} {
		data, err := EncodeSync(tt.of)
		var got Sync
		unmarshal(t, data, &got)
		if err != nil || len(got.Decisions) != tt.count || got.More != tt.more {
			t.Errorf("%s: %d decisions, more %t, %v", tt.name, len(got.Decisions), got.More, err)
		}
	}
}

func TestRMT_22_DecisionsHaveOneOrder(t *testing.T) {
	first := Cursor{CreatedAt: 5, ID: "b"}
	for other, after := range map[Cursor]bool{{5, "b"}: false, {5, "a"}: true, {5, "c"}: false, {4, "c"}: true, {6, "a"}: false} {
		if got := first.After(other); got != after {
			t.Errorf("it comes after %+v: %t", other, got)
		}
	}
	if got := decided().Cursor(); got != (Cursor{madeAt, "d-1"}) {
		t.Errorf("its place is %+v", got)
	}
}

func TestRMT_22_ADecisionBecomesARevisionAndBack(t *testing.T) {
	source := "m-1"
	for _, tt := range []struct {
		name   string
		source *string
	}{{"with a source", &source}, {"without", nil}} {
		d := decided()
		if tt.source == nil {
			d.SourceMessageID = ""
		}
		want := decision.Revision{
			ID: "d-1", Topic: "build", Text: "use make", Scope: decision.AllSessions(), Author: bridge.Address{ID: "lab/web", Name: "lab/web", Agent: bridge.Claude}, CreatedAt: madeAt, SourceMessageID: tt.source,
		}
		got := d.Revision("lab")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		got.Author.Name = "web"
		if back, err := DecidedOf(got); err != nil || back != d {
			t.Errorf("%s: back it is %+v, %v", tt.name, back, err)
		}
		got.Scope = decision.ProjectOf("/src")
		if _, err := DecidedOf(got); bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("%s: for a project: %v", tt.name, err)
		}
	}
}

func TestRMT_23_AFrameOfListsIsAQuestionOrItsAnswer(t *testing.T) {
	list := &List{Sessions: []Listed{{Name: "api"}}, Jobs: []Listed{}}
	failed := &bridge.Error{Code: bridge.Denied, Message: "no"}
	for _, tt := range []struct {
		name     string
		of       View
		question bool
		code     bridge.Code
	}{
		{"a question", View{Rid: rid, Now: 1}, true, ""},
		{"a list", View{Rid: rid, Now: 1, List: list}, false, ""},
		{"an error", View{Rid: rid, Now: 1, Error: failed}, false, ""},
		{"both", View{Rid: rid, Now: 1, List: list, Error: failed}, false, bridge.Invalid},
		{"no time", View{Rid: rid, List: list}, false, bridge.Invalid},
		{"no id", View{Rid: "1", Now: 1}, true, bridge.Invalid},
	} {
		data, err := EncodeView(tt.of)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseView(data)
		if bridge.CodeOf(err) != tt.code || got.IsQuestion() != tt.question {
			t.Errorf("%s: %v, question %t", tt.name, err, got.IsQuestion())
		}
		if diff := cmp.Diff(tt.of, got, cmpopts.IgnoreUnexported(bridge.Error{})); err == nil && diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if _, err := ParseView([]byte(`{"rid":"` + rid + `","now":1,"bin":1}`)); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("a member that nobody knows: %v", err)
	}
}

func TestRMT_23_AListIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	all := []Listed{{Name: "a\nb"}, {Name: "api", Agent: bridge.AgentKind(long), State: long, Title: long, Cwd: long}}
	for i := range MaxListed {
		all = append(all, Listed{Name: fmt.Sprint("n", i)})
	}
	got, err := ParseView(marshal(t, View{Rid: rid, Now: 1, List: &List{Sessions: all, Jobs: all[:2]}}))
	if err != nil || len(got.List.Sessions) != MaxListed || len(got.List.Jobs) != 1 {
		t.Fatalf("%v: %d sessions, %d jobs", err, len(got.List.Sessions), len(got.List.Jobs))
	}
	listing := got.List.Jobs[0]
	for what, size := range map[string][2]int{"agent": {len([]rune(listing.Agent)), 32}, "state": {len([]rune(listing.State)), 32}, "title": {len([]rune(listing.Title)), maxTitleChars}, "folder": {len([]rune(listing.Cwd)), maxPathChars}} {
		if size[0] > size[1]+1 || size[0] < size[1]-1 {
			t.Errorf("the %s has %d characters, at most %d", what, size[0], size[1])
		}
	}
	data, err := EncodeView(View{Rid: rid, Now: 1, Error: &bridge.Error{Code: bridge.Denied, Message: long}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseView(data); err != nil || len(got.Error.Message) >= len(long) {
		t.Errorf("an error's words are not cut: %v", err)
	}
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func unmarshal(t *testing.T, data []byte, value any) {
	t.Helper()
	if err := json.Unmarshal(data, value); err != nil {
		t.Fatal(err)
	}
}
