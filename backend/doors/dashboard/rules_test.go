package dashboard

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/rules"
)

// ruled is a world over real rules: a prefix that was used once, and a tool's.
func ruled(t *testing.T) (*world, *rules.Rules) {
	t.Helper()
	var kept *rules.Rules
	w := newWorld(t, func(o *Options) {
		kept = rules.Open(rules.Options{Path: filepath.Join(t.TempDir(), "rules.json"), Now: o.Now, Log: slog.New(slog.DiscardHandler)})
		o.Jobs, o.Rules = toldJobs{}, kept
	})
	test := rule.Request{Agent: bridge.Codex, Kind: "command", Tool: "shell", Detail: "go test ./api", Folder: t.TempDir()}
	if _, err := kept.Make(test, rule.Wish{Match: rule.Prefix, Words: []string{"go", "test"}, Folder: "this"}); err != nil {
		t.Fatal(err)
	}
	if _, allowed := kept.Allow(test, "codex-job-0a1b2c3d"); !allowed {
		t.Fatal("the rule does not allow what it was made of")
	}
	fetch := rule.Request{Agent: bridge.Claude, Kind: "tool", Tool: "WebFetch", Detail: `{"url":"https://example.org/"}`, Folder: "/src/api"}
	if _, err := kept.Make(fetch, rule.Wish{Match: rule.Exact, Folder: "all", Until: fixedTime.Add(time.Hour).UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	return w, kept
}

// steady is an answer without what differs from run to run.
func steady(body string, list []dto.Rule) string {
	body = regexp.MustCompile(`rule-[0-9a-f]{8}`).ReplaceAllString(body, "rule-5d1e9a0b")
	return strings.ReplaceAll(body, list[0].Folder, "/src/api")
}

func TestNED_04_RulesAreListedWithTheirUsesAndTakenBack(t *testing.T) {
	w, kept := ruled(t)
	answer := w.get("/api/rules")
	list := decode[dto.Rules](t, answer).Rules
	if len(list) != 2 || list[0].Uses != 1 || *list[0].LastUse != fixedTime.UnixMilli() || list[0].LastFor != "codex-job-0a1b2c3d" || list[1].Uses != 0 || list[1].LastUse != nil {
		t.Fatalf("listed: %+v", list)
	}
	golden(t, "rules", steady(answer.body, list))
	kept.OnTakenBack(func(id string) rules.Undone { return rules.Undone{Asked: []string{"q-2"}, Handed: []string{"q-1"}} })
	taken := w.do(w.request(http.MethodDelete, "/api/rules/"+list[0].ID, "", func(r *http.Request) { r.Header.Del("Content-Type") }))
	golden(t, "rule-taken", steady(taken.body, list))
	if left := decode[dto.Rules](t, w.get("/api/rules")).Rules; len(left) != 1 || left[0].ID != list[1].ID {
		t.Errorf("left: %+v", left)
	}
	refused(t, "one that never was", w.do(w.request(http.MethodDelete, "/api/rules/rule-00000000", "{}")), http.StatusNotFound)
	w.clock.Advance(time.Hour)
	if left := decode[dto.Rules](t, w.get("/api/rules")).Rules; len(left) != 0 {
		t.Errorf("after its time: %+v", left)
	}
}

func TestNED_04_FromNowOnGoesWithAllowAlone(t *testing.T) {
	w, _ := ruled(t)
	const exact = `"rule":{"match":"exact","folder":"this"}`
	for name, body := range map[string]string{
		"a denial":         `{"decision":"deny",` + exact + `}`,
		"a reason":         `{"decision":"allow","reason":"x",` + exact + `}`,
		"no folder":        `{"decision":"allow","rule":{"match":"exact"}}`,
		"an unknown match": `{"decision":"allow","rule":{"match":"all","folder":"this"}}`,
		"a tool's name":    `{"decision":"allow","rule":{"match":"exact","folder":"this","tool":"Bash"}}`,
		"one word":         `{"decision":"allow","rule":{"match":"prefix","words":["go"],"folder":"this"}}`,
	} {
		refused(t, name, w.post("/api/approvals/q-2", body), http.StatusBadRequest)
	}
	approval := decode[dto.Approval](t, w.post("/api/approvals/q-2", `{"decision":"allow",`+exact+`}`))
	if approval.State != "answered" || approval.FromNowOn != nil {
		t.Errorf("from now on: %+v", approval)
	}
}

// onePrompt is a session's permission prompt, answered as often as that is tried.
type onePrompt struct{ approval *job.Approval }

func (p onePrompt) Approvals() []job.Approval { return []job.Approval{*p.approval} }
func (p onePrompt) Has(id string) bool        { return id == p.approval.ID }
func (p onePrompt) Answer(_ string, decision job.Decision, reason string) (job.Approval, error) {
	err := p.approval.Answer(bridge.OwnerName, decision, reason, fixedTime)
	return *p.approval, err
}
func (p onePrompt) Choose(string, [][]string) (job.Approval, error) { return *p.approval, nil }
func (onePrompt) Prompting() api.Prompting                          { return api.Prompting{} }
func (onePrompt) SetAway(bool) (api.Prompting, error)               { return api.Prompting{}, nil }

func TestNED_04_NED_02_APromptOfASessionIsAllowedFromNowOn(t *testing.T) {
	folder := t.TempDir()
	ask := func() job.Approval {
		return job.NewApproval(job.Approval{ID: "p-1", Session: "claude-api", Agent: "claude", Kind: "command", What: "Bash", Detail: "go test ./api", Cwd: folder}, fixedTime)
	}
	approval := ask()
	var kept *rules.Rules
	w := newWorld(t, func(o *Options) {
		kept = rules.Open(rules.Options{Path: filepath.Join(t.TempDir(), "rules.json"), Now: o.Now, Log: slog.New(slog.DiscardHandler)})
		o.Prompts, o.Rules = onePrompt{&approval}, kept
	})
	shown := decode[dto.Approvals](t, w.get("/api/approvals")).Approvals[0].FromNowOn
	if shown == nil || !shown.Exact || strings.Join(shown.Words, " ") != "go test ./api" || shown.Least != 2 || shown.Folder != folder {
		t.Fatalf("offered: %+v", shown)
	}
	body := `{"decision":"allow","rule":{"match":"prefix","words":["go","test"],"folder":"this"}}`
	if got := decode[dto.Approval](t, w.post("/api/approvals/p-1", body)); got.Decision != job.Allow || got.FromNowOn != nil {
		t.Errorf("from now on: %+v", got)
	}
	again := ask()
	if used, allowed := kept.Allow(rule.OfSession(again), again.Session); !allowed || used.Folder != folder {
		t.Errorf("the next prompt: %+v, %v", used, allowed)
	}
	if answer := w.post("/api/approvals/p-1", body); answer.status != http.StatusConflict {
		t.Errorf("a late one: %d %s", answer.status, answer.body)
	}
	approval = ask()
	approval.OnlyTold = "its dialog is elsewhere"
	if shown := decode[dto.Approvals](t, w.get("/api/approvals")).Approvals[0].FromNowOn; shown != nil {
		t.Errorf("what cannot be answered here is offered: %+v", shown)
	}
	if live, err := kept.Live(); err != nil || len(live) != 1 {
		t.Errorf("the rules are %+v, %v", live, err)
	}
}

func TestNED_04_RulesThatCannotBeReadAllowNothingAndSaySo(t *testing.T) {
	for _, content := range []string{"{", `{"version":2,"rules":[]}`, `{"rules":[]}`, "[]"} {
		path := filepath.Join(t.TempDir(), "rules.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		broken := rules.Open(rules.Options{Path: path, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		w := newWorld(t, func(o *Options) { o.Rules = broken })
		if got := w.get("/api/rules"); got.status < 500 || !strings.Contains(got.body, "everything is asked") {
			t.Errorf("%s: %d %s", content, got.status, got.body)
		}
		if _, err := broken.Make(rule.Request{Agent: bridge.Codex, Kind: "command", Detail: "ls a", Folder: "/x"}, rule.Wish{Match: rule.Exact, Folder: "this"}); err == nil {
			t.Errorf("%s: a rule was made over it", content)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("%s was replaced by %s, %v", content, now, err)
		}
	}
}
