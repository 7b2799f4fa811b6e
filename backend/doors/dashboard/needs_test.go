package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/core/question"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// keptAway stands where needs.json is.
type keptAway struct {
	ids  []string
	fail error
}

func (k *keptAway) PutAway() (config.PutAway, error) { return config.PutAway{IDs: k.ids}, k.fail }

func (k *keptAway) SetPutAway(id string, away bool) error {
	k.ids = slices.DeleteFunc(k.ids, func(known string) bool { return known == id })
	if away {
		k.ids = append(k.ids, id)
	}
	return k.fail
}

func needIDs(items []needs.Item) (ids []string) {
	for _, item := range items {
		ids = append(ids, item.ID)
	}
	return ids
}

func TestNED_01_NewsIsPutAwayAndTakenBackForEveryPlaceThatShowsIt(t *testing.T) {
	away := &keptAway{}
	w := newWorld(t, func(o *Options) { o.Jobs, o.PutAway = toldJobs{}, away })
	w.broker.join(t, claudeSession())
	from := codexSession()
	w.store("m-1", from.Address(), "claude-app", "peer-1")
	w.clock.Advance(16 * time.Minute)
	listed := func() []string {
		t.Helper()
		page := needIDs(decode[dto.State](t, w.get("/api/state")).Needs)
		facts, err := w.board.Needs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if others := needIDs(needs.List(facts, w.clock.Now())); !slices.Equal(page, others) {
			t.Errorf("the page has %q, other places have %q", page, others)
		}
		return page
	}
	const mail = "mail:claude-app:m-1"
	if got := listed(); !slices.Equal(got, []string{mail}) { // the approval of toldJobs has expired by now
		t.Fatalf("at first %q", got)
	}
	path := "/api/needs/" + url.PathEscape(mail)
	if got := decode[dto.Needs](t, w.post(path, `{"away":true}`)); len(got.Needs) != 0 {
		t.Errorf("the answer still has %q", needIDs(got.Needs))
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("put away, and there is still %q", got)
	}
	decode[dto.Needs](t, w.post(path, `{"away":false}`))
	if got := listed(); !slices.Equal(got, []string{mail}) {
		t.Errorf("taken back: %q", got)
	}
	refused(t, "what there is not", w.post("/api/needs/mail:nobody:m-9", `{"away":true}`), http.StatusNotFound)
	refused(t, "no body", w.post(path, ``), http.StatusBadRequest)
	refused(t, "an unknown member", w.post(path, `{"gone":true}`), http.StatusBadRequest)
	away.fail = errors.New("the disk is full")
	refused(t, "a full disk", w.post(path, `{"away":true}`), http.StatusInternalServerError)
}

func TestNED_01_WhatHasToBeDealtWithCannotBePutAway(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Jobs, o.PutAway = toldJobs{}, &keptAway{} })
	refused(t, "an approval", w.post("/api/needs/approval:q-2", `{"away":true}`), http.StatusConflict)
	if got := needIDs(decode[dto.State](t, w.get("/api/state")).Needs); !slices.Equal(got, []string{"approval:q-2"}) {
		t.Errorf("the list is %q", got)
	}
	none := newWorld(t)
	refused(t, "nowhere to remember it", none.post("/api/needs/x", `{"away":true}`), http.StatusServiceUnavailable)
}

// toldQuestions stands where what sessions ask is: one is open, and one was taken back.
type toldQuestions struct{}

func (toldQuestions) Questions() []question.Question {
	address, now := bridge.Address{ID: "peer-1", Name: "claude-app", Agent: bridge.Claude}, fixedTime.UnixMilli()
	return []question.Question{
		{ID: "0198f0a2-0000-7000-8000-00000000000b", Project: "/src/app", Title: "Go on?", Blocking: true, By: address, State: question.Cancelled, AskedAt: now - 600_000, EndedAt: now - 300_000},
		{
			ID: "0198f0a2-0000-7000-8000-00000000000a", Project: "/src/app", Title: "Which port?", Context: "4777 is taken.", Topic: "port", By: address, State: question.Open, AskedAt: now - 30_000,
			Options: []question.Option{{ID: "1", Label: "4778", Consequence: "The tests run as they are."}, {ID: "2", Label: "A free one", Consequence: "Three tests are rewritten."}},
		},
	}
}

func (t toldQuestions) Needs() []needs.QuestionFact {
	item := t.Questions()[1]
	return []needs.QuestionFact{{ID: item.ID, By: item.By.Name, Folder: item.Project, Title: item.Title, Context: item.Context, Options: []string{"4778", "A free one"}, AskedAt: item.AskedAt}}
}

func (t toldQuestions) Answer(_ context.Context, id string, answer question.Answer) (question.Question, error) {
	for _, item := range t.Questions() {
		if item.ID == id {
			err := item.Decide(answer, fixedTime.UnixMilli())
			item.Message, item.Carried, item.Pinned = question.MessageID(id), true, answer.Pin
			return item, err
		}
	}
	return question.Question{}, bridge.Errorf(bridge.NotFound, "there is no question %q", id)
}

func TestNED_03_OnlyAWholeAnswerToAnOpenQuestionIsTaken(t *testing.T) {
	w := furnished(t)
	const open, over = "/api/questions/0198f0a2-0000-7000-8000-00000000000a", "/api/questions/0198f0a2-0000-7000-8000-00000000000b"
	refused(t, "nothing", w.post(open, `{}`), http.StatusBadRequest)
	refused(t, "no such option", w.post(open, `{"option":"5"}`), http.StatusBadRequest)
	refused(t, "a number", w.post(open, `{"option":2}`), http.StatusBadRequest)
	refused(t, "an unknown member", w.post(open, `{"option":"1","by":"me"}`), http.StatusBadRequest)
	refused(t, "too many words", w.post(open, `{"text":"`+strings.Repeat("x", 8001)+`"}`), http.StatusRequestEntityTooLarge)
	refused(t, "no such question", w.post("/api/questions/q-9", `{"text":"x"}`), http.StatusNotFound)
	if a := w.post(over, `{"text":"x"}`); a.status != http.StatusConflict || !strings.Contains(a.body, `"state":"cancelled"`) {
		t.Errorf("too late: %d %s", a.status, a.body)
	}
	none := newWorld(t)
	refused(t, "no questions.db", none.post(open, `{"text":"x"}`), http.StatusServiceUnavailable)
	if got := decode[dto.Questions](t, none.get("/api/questions")); got.Questions == nil || len(got.Questions) != 0 {
		t.Errorf("without questions.db: %+v", got)
	}
}

// toldExchanges stands where the exchanges of sessions are: two only write each other, and
// two are paused.
type toldExchanges struct {
	asked api.ExchangeArgs
	holds string // the recipient whose mail waits
}

func (*toldExchanges) Facts(context.Context) ([]needs.ExchangeFact, error) {
	session, two, three := needs.ExchangeSession{ID: "peer-1", Name: "claude-app"}, needs.ExchangeSession{ID: "peer-2", Name: "codex-web"}, needs.ExchangeSession{ID: "peer-3", Name: "opencode-docs"}
	now := fixedTime.UnixMilli()
	return []needs.ExchangeFact{{A: session, B: two, Messages: 9, Since: now - 60_000}, {A: two, B: three, Paused: true, Messages: 2, Since: now - 600_000}}, nil
}

func (x *toldExchanges) Holds(m bridge.Message) bool { return m.Recipient == x.holds }

func (x *toldExchanges) Decide(_ context.Context, args api.ExchangeArgs) (api.Exchange, error) {
	x.asked = args
	return api.Exchange{A: "claude-app", B: "codex-web", Paused: args.Action == api.ExchangePause, Waiting: 1}, args.Check()
}

func TestQUI_02_ThePagePausesAndResumesTwoSessions(t *testing.T) {
	exchanges := &toldExchanges{}
	w := newWorld(t, func(o *Options) { o.Exchanges = exchanges })
	if got := needIDs(decode[dto.State](t, w.get("/api/state")).Needs); len(got) != 2 || !strings.HasPrefix(got[0], "exchange:peer-1:peer-2:") || !strings.HasPrefix(got[1], "exchange:peer-2:peer-3:") {
		t.Errorf("the list is %q", got)
	}
	for _, action := range []api.ExchangeAction{api.ExchangePause, api.ExchangeResume} {
		want := dto.Exchange{A: "claude-app", B: "codex-web", Paused: action == api.ExchangePause, Waiting: 1}
		if got := decode[dto.Exchange](t, w.post("/api/exchanges", `{"a":"peer-1","b":"peer-2","action":"`+string(action)+`"}`)); got != want {
			t.Errorf("%s: %+v", action, got)
		}
		if exchanges.asked != (api.ExchangeArgs{A: "peer-1", B: "peer-2", Action: action}) {
			t.Errorf("asked was %+v", exchanges.asked)
		}
	}
	refused(t, "an unknown action", w.post("/api/exchanges", `{"a":"peer-1","b":"peer-2","action":"stop"}`), http.StatusBadRequest)
	refused(t, "an unknown member", w.post("/api/exchanges", `{"a":"peer-1","b":"peer-2","action":"pause","for":"ever"}`), http.StatusBadRequest)
	refused(t, "without a broker", newWorld(t).post("/api/exchanges", `{"a":"peer-1","b":"peer-2","action":"pause"}`), http.StatusServiceUnavailable)
}

// Mail that waits because the owner paused it is not left unread by its recipient.
func TestQUI_02_PausedMailIsNotOverdue(t *testing.T) {
	exchanges := &toldExchanges{}
	w := newWorld(t, func(o *Options) { o.Exchanges = exchanges })
	w.broker.join(t, claudeSession())
	from := codexSession()
	w.store("m-1", from.Address(), "claude-app", "peer-1")
	w.clock.Advance(16 * time.Minute)
	unread := func() int {
		t.Helper()
		return needs.Counts(decode[dto.State](t, w.get("/api/state")).Needs)[needs.Mail]
	}
	if got := unread(); got != 1 {
		t.Errorf("%d sessions leave their mail unread, want 1", got)
	}
	exchanges.holds = "peer-1"
	w.broker.Changed()
	if got := unread(); got != 0 {
		t.Errorf("%d sessions leave their paused mail unread", got)
	}
}
