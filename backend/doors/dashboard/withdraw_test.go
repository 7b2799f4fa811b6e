package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/doors/dashboard/dto"
)

func TestPGE_04_DecisionsArePinnedRevisedAndWithdrawn(t *testing.T) {
	w := newWorld(t)
	pinned := decode[dto.Decided](t, w.post("/api/decisions", `{"id":"d1","topic":" DB ","text":"SQLite","scope":{"project":"/src/app"}}`))
	if d := pinned.Decision; d.ID != "d1" || d.Topic != "db" || !d.Current || d.Scope.Project != "/src/app" || d.Author.Name != bridge.OwnerName || pinned.DeliveredTo == nil {
		t.Errorf("pinned: %+v", pinned)
	}
	revised := decode[dto.Decided](t, w.post("/api/decisions", `{"id":"d2","topic":"db","text":"Postgres","scope":"all","supersedes":"d1"}`))
	if d := revised.Decision; !d.Current || !d.Scope.All || *d.Supersedes != "d1" {
		t.Errorf("revised: %+v", d)
	}
	answer := w.post("/api/decisions/db/withdraw", `{"id":"d3","reason":"too slow","supersedes":"d2"}`)
	golden(t, "withdrawn", answer.body)
	if d := decode[dto.Decided](t, answer).Decision; d.Current || !d.Withdrawn || d.Text != "Withdrawn: too slow" || *d.Supersedes != "d2" {
		t.Errorf("withdrawn: %+v", d)
	}
	if got := ids(t, w.get("/api/decisions")); len(got) != 0 {
		t.Errorf("in force: %v", got)
	}
	if diff := cmp.Diff([]string{"d3", "d2", "d1"}, ids(t, w.get("/api/decisions/db/history"))); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	w.post("/api/decisions", `{"id":"d4","topic":"db","text":"SQLite again","scope":"all"}`)
	if diff := cmp.Diff([]string{"d4"}, ids(t, w.get("/api/decisions"))); diff != "" {
		t.Errorf("decided again (-want +got):\n%s", diff)
	}
}

func TestPGE_04_RefusedDecisionsChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.decide("d1", "ui/colors", "Blue", decision.AllSessions())
	for _, tt := range []struct {
		name, path, body string
		status           int
		says             string
	}{
		{"no scope", "/api/decisions", `{"topic":"db","text":"x"}`, http.StatusBadRequest, "the member scope"},
		{"a malformed scope", "/api/decisions", `{"topic":"db","text":"x","scope":"some"}`, http.StatusBadRequest, "scope"},
		{"no text", "/api/decisions", `{"topic":"db","text":" ","scope":"all"}`, http.StatusBadRequest, "text"},
		{"no topic", "/api/decisions", `{"topic":" ","text":"x","scope":"all"}`, http.StatusBadRequest, "topic"},
		{"another member", "/api/decisions", `{"topic":"db","text":"x","scope":"all","author":"me"}`, http.StatusBadRequest, "author"},
		{"no JSON", "/api/decisions", `topic`, http.StatusBadRequest, ""},
		{"a long text", "/api/decisions", `{"topic":"db","text":"` + strings.Repeat("x", 8001) + `","scope":"all"}`, http.StatusRequestEntityTooLarge, "text"},
		{"a revision of another one", "/api/decisions", `{"topic":"ui/colors","text":"x","scope":"all","supersedes":"d0"}`, http.StatusConflict, "ui/colors"},
		{"a revision of nothing", "/api/decisions", `{"topic":"db","text":"x","scope":"all","supersedes":"d0"}`, http.StatusNotFound, "db"},
		{"an id that is taken", "/api/decisions", `{"id":"d1","topic":"db","text":"x","scope":"all"}`, http.StatusConflict, "d1"},
		{"a withdrawal of nothing", "/api/decisions/db/withdraw", `{}`, http.StatusNotFound, "db"},
		{"of another one", "/api/decisions/ui%2Fcolors/withdraw", `{"supersedes":"d0"}`, http.StatusConflict, "ui/colors"},
		{"of a malformed topic", "/api/decisions/%0A/withdraw", `{}`, http.StatusBadRequest, "topic"},
		{"with a long reason", "/api/decisions/ui%2Fcolors/withdraw", `{"reason":"` + strings.Repeat("x", 8000) + `"}`, http.StatusRequestEntityTooLarge, "reason"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := w.post(tt.path, tt.body)
			refused(t, tt.name, a, tt.status)
			if !strings.Contains(a.body, tt.says) {
				t.Errorf("it says %s, want %q", a.body, tt.says)
			}
		})
	}
	if diff := cmp.Diff([]string{"d1"}, ids(t, w.get("/api/decisions"))); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/api/decisions", "/api/decisions/ui%2Fcolors/withdraw"} {
		foreign := w.request(http.MethodPost, path, `{}`, func(r *http.Request) { r.Header.Del("x-bridge") })
		refused(t, "another site's page at "+path, w.do(foreign), http.StatusForbidden)
	}
	alone := newWorld(t, offline)
	refused(t, "without a broker", alone.post("/api/decisions", `{"topic":"db","text":"x","scope":"all"}`), http.StatusServiceUnavailable)
	refused(t, "without a broker", alone.post("/api/decisions/db/withdraw", `{}`), http.StatusServiceUnavailable)
}

// TestPGE_04_ANoticeOfTheOwnersIsADecision: so the page says whom it reached.
func TestPGE_04_ANoticeOfTheOwnersIsADecision(t *testing.T) {
	row := mail.HistoryRow{From: bridge.OwnerAddress(), Hop: bridge.DecisionHop, ConversationID: bridge.DecisionConversation + "d1"}
	if got := dto.KindOf(row); got != "decision" {
		t.Errorf("it is shown as %s", got)
	}
	row.Hop = 0
	if got := dto.KindOf(row); got != "owner" {
		t.Errorf("the owner's own message is shown as %s", got)
	}
}
