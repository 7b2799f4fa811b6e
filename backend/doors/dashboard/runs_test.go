package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	pages "bridge/backend/doors/dashboard/runs"
	"bridge/backend/jobs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/jobs/landing"
	"bridge/backend/platform/ipc/api"
)

// toldJobs stands where the delegated jobs are and has fixed ones: one that works,
// one that waits for an answer, one in line and one that has ended.
type toldJobs struct{}

const working, asking, queued, ended = "codex-job-0a1b2c3d", "claude-job-1b2c3d4e", "opencode-job-2c3d4e5f", "codex-ask-3d4e5f60"

func (toldJobs) views() []api.JobView {
	now, percent, eta := fixedTime.UnixMilli(), 40, int64(3)
	landed := job.Finish{
		Action: "squash", State: job.LandingDone, Run: 1, At: job.Millis(now - 400_000), Commit: "5b1f7c2", Head: "9c0a41d", Target: "3f6c1f0", Next: "5b1f7c2", On: "main",
	}
	return []api.JobView{
		{
			Job: queued, By: "codex-api", Agent: bridge.OpenCode, Title: "Write the release notes", Status: job.Queued, Access: job.AccessRead,
			Workdir: "/src/docs", Next: "Begin with the changes of the page.",
		},
		{
			Job: asking, By: "codex-api", Agent: bridge.Claude, Title: "Mend the flaky test", Status: job.Waiting,
			Wait: &job.Wait{For: job.ForApproval, ID: "q-2", Until: job.Millis(now + 9*60_000)}, Model: "sonnet", Access: job.AccessAsk, Layer: "none",
			Step: "Bash: go test ./...", Workdir: "/src/api", Session: "0198f0a2-0000-7000-8000-000000000002", Tokens: 5120, CostUSD: 0.031, StartedAt: now - 60_000,
		},
		{
			Job: working, By: "claude-app", Agent: bridge.Codex, Title: "Make the parser tests pass", Status: job.Running, Model: "gpt-5-codex",
			Effort: "high", Access: job.AccessEdit, Layer: "own", Progress: api.JobProgress{Percent: &percent, ETAMinutes: &eta, Note: "two of five pass"},
			Step: "command: go test ./parser", Workdir: "/src/worktrees/app-" + working, Branch: "bridge/" + working,
			Worktree: &api.JobWorktree{
				Path: "/src/worktrees/app-" + working, Repository: "/src/app", Bytes: 1_482_213, Stays: "the job goes on",
				Landing: &job.Landing{Finish: landed, Earlier: []job.Finish{{Action: "discard", State: job.LandingFailed}}}, Landed: &landed,
			},
			Session: "0198f0a2-0000-7000-8000-000000000001", Tokens: 48_213, CostUSD: 0.42, StartedAt: now - 300_000,
		},
		{
			Job: ended, By: "claude-app", Agent: bridge.Codex, Title: "Which port?", Status: job.Finished, Ended: job.EndAnswer, Model: "gpt-5-codex",
			Access: job.AccessRead, Layer: "own", Workdir: "/src/app", Session: "0198f0a2-0000-7000-8000-000000000003", Tokens: 910,
			StartedAt: now - 900_000, EndedAt: now - 840_000,
		},
	}
}

func (t toldJobs) Turns(name string) ([]jobfiles.Turn, error) {
	detail, err := t.Detail(name)
	if err != nil || detail.Result == nil {
		return []jobfiles.Turn{{Run: 1, Message: detail.Prompt, Problem: "the result cannot be read: /x"}, {Run: 2}}, err
	}
	return []jobfiles.Turn{{Run: 1, Message: detail.Prompt, Result: detail.Result}}, nil
}

func (t toldJobs) Recent(int) []api.JobView { return t.views() }

func (t toldJobs) Detail(name string) (jobs.Detail, error) {
	for _, view := range t.views() {
		if view.Job != name {
			continue
		}
		detail := jobs.Detail{JobView: view, Prompt: "On which port does it listen?"}
		if name == ended {
			exit := 0
			envelope := runs.NewEnvelope(name, 1, job.Outcome{State: job.Finished, Ended: job.EndAnswer}, "It listens on 4777.", runs.Evidence{
				Base: "3f6c1f0", Head: "3f6c1f0", Files: []runs.Changed{{Path: "notes.md", Status: "added", Added: 3}},
				Commands: []runs.Command{{Command: "rg -n listen", Exit: &exit}}, Tokens: 910, DurationMs: 58_211, Layer: "own",
			}, fixedTime)
			envelope.Variables = []string{"HOME", "OPENAI_API_KEY"}
			detail.Result = &envelope
		}
		return detail, nil
	}
	return jobs.Detail{}, bridge.Errorf(bridge.NotFound, "there is no job named %q", name)
}

func (toldJobs) ReadLog(name string, from int64) (jobfiles.Log, error) {
	if name != working {
		return jobfiles.Log{}, bridge.Errorf(bridge.NotFound, "there is no job named %q", name)
	}
	const log = "14:00:00 reads the tests\n"
	if from > int64(len(log)) {
		return jobfiles.Log{}, bridge.Errorf(bridge.Invalid, "from must be 0 to %d, not %d", len(log), from)
	}
	return jobfiles.Log{Text: log[from:], Next: int64(len(log)), Size: int64(len(log))}, nil
}

func (toldJobs) Approvals() []job.Approval {
	now := job.Millis(fixedTime.UnixMilli())
	return []job.Approval{
		{
			ID: "q-1", Job: asking, Session: "0198f0a2-0000-7000-8000-000000000002", By: "codex-api", Kind: "command", What: "Bash", Detail: "git status",
			Cwd: "/src/api", State: job.ApprovalDelivered, AskedAt: now - 120_000, ExpiresAt: now + 480_000, AnsweredAt: now - 90_000, AnsweredBy: "you",
			Decision: job.Allow,
		},
		{
			ID: "q-2", Job: asking, Session: "0198f0a2-0000-7000-8000-000000000002", By: "codex-api", Kind: "command", What: "Bash", Detail: "go test ./...\nrm -r out",
			Cwd: "/src/api", Why: "to see the test fail", State: job.ApprovalAsked, AskedAt: now - 60_000, ExpiresAt: now + 540_000,
		},
	}
}

// Answer takes an answer to the question that is open.
func (t toldJobs) Answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	for _, approval := range t.Approvals() {
		if approval.ID == id {
			err := approval.Answer(bridge.OwnerName, decision, reason, fixedTime)
			return approval, err
		}
	}
	return job.Approval{}, bridge.Errorf(bridge.NotFound, "there is no approval %q", id)
}

// AnswerFromNowOn takes it and keeps no rule.
func (t toldJobs) AnswerFromNowOn(id string, wish rule.Wish) (job.Approval, error) {
	if _, err := rule.New("rule-1", rule.Request{Agent: bridge.Codex, Kind: "command", Detail: "go test ./x", Folder: "/src/api"}, wish, fixedTime); err != nil {
		return job.Approval{}, err
	}
	return t.Answer(id, job.Allow, "")
}

func (toldJobs) FromNowOn(approval job.Approval) (rule.Offer, string) {
	return rule.OfferFor(rule.Request{Agent: bridge.Codex, Kind: approval.Kind, Tool: approval.What, Detail: approval.Detail, Folder: "/src/api"}), "/src/api"
}

func (t toldJobs) Say(_ string, control job.Control) (api.JobMessaged, error) {
	detail, err := t.Detail(control.Job)
	if err != nil {
		return api.JobMessaged{}, err
	}
	result := api.JobMessaged{JobStatus: api.JobStatus{Job: control.Job, Status: detail.Status}}
	if control.Message != "" {
		result.Delivery = new(job.ToRunning)
	}
	return result, nil
}

func (t toldJobs) Cancel(name string) (api.JobStatus, error) {
	detail, err := t.Detail(name)
	return api.JobStatus{Job: name, Status: detail.Status}, err
}

func (toldJobs) Worktrees() (count int, bytes int64) { return 1, 1_482_213 }

func (t toldJobs) Diff(_ context.Context, name string) (landing.Diff, error) {
	if _, err := t.Detail(name); err != nil {
		return landing.Diff{}, err
	}
	return landing.Diff{Base: "3f6c1f0", Head: "9c0a41d", Files: []gitwork.FileChange{
		{Path: "parser.go", Status: "modified", Added: 1, Removed: 1, Patch: "diff --git a/parser.go b/parser.go\n--- a/parser.go\n+++ b/parser.go\n@@ -1 +1 @@\n-one\n+two\n"},
		{Path: "shop.png", From: "logo.png", Status: "renamed", Binary: true},
	}}, nil
}

// DiffSince knows one commit of the job's branch.
func (t toldJobs) DiffSince(ctx context.Context, name, commit string) (landing.Diff, error) {
	if commit != "9c0a41d" {
		return landing.Diff{}, bridge.Errorf(bridge.NotFound, "the branch of %s has no commit %s", name, commit)
	}
	diff, err := t.Diff(ctx, name)
	diff.Base, diff.Files = commit, diff.Files[:1]
	return diff, err
}

// Finish meets a conflict in a merge, and changes of the owner's in what is applied.
func (t toldJobs) Finish(_ context.Context, args api.JobFinishArgs) (api.JobFinished, error) {
	if _, err := t.Detail(args.Job); err != nil {
		return api.JobFinished{}, err
	}
	done := api.JobFinished{Job: args.Job, Action: args.Action, Conflicts: []string{}, Branch: "bridge/" + args.Job, Checkout: "/src/app"}
	switch {
	case args.Action == "merge":
		done.Conflicts = []string{"parser.go"}
		if !args.DryRun {
			return done, bridge.Errorf(bridge.Conflict, "the work of %s conflicts with what is in /src/app (parser.go): nothing was done", args.Job)
		}
	case args.Action == "apply":
		return api.JobFinished{}, bridge.Errorf(bridge.Conflict, "/src/app has changes of its own (a.txt): commit or put them away, then finish %s", args.Job)
	case args.Action == "undo" && args.Job != working:
		return api.JobFinished{}, bridge.Errorf(bridge.Conflict, "no work of %s has landed that could be taken back", args.Job)
	case args.Action == "undo":
		done.Done = !args.DryRun
	case args.Action != "squash":
		return api.JobFinished{}, bridge.Errorf(bridge.Invalid, "unknown action %q", args.Action)
	default:
		done.Done, done.Commit = !args.DryRun, args.Message
	}
	return done, nil
}

func TestPGE_11_TheDiffSinceAReviewAndTheUndoOfALanding(t *testing.T) {
	w := furnished(t)
	run := "/api/runs/" + working
	since := decode[dto.RunDiff](t, w.get(run+"/diff?since=9c0a41d"))
	if since.Base != "9c0a41d" || len(since.Files) != 1 {
		t.Errorf("since a review the diff is %+v", since)
	}
	if all := decode[dto.RunDiff](t, w.get(run+"/diff?since=")); all.Base != "3f6c1f0" || len(all.Files) != 2 {
		t.Errorf("since nothing it is %+v", all)
	}
	refused(t, "a commit of another branch", w.get(run+"/diff?since=3f6c1f0"), 404)
	refused(t, "another parameter", w.get(run+"/diff?until=9c0a41d"), 400)

	for _, dry := range []bool{true, false} {
		got := decode[dto.Finished](t, w.post(run+"/finish", fmt.Sprintf(`{"action":"undo","dryRun":%t}`, dry)))
		if got.Done == dry || got.Action != "undo" || len(got.Conflicts) != 0 {
			t.Errorf("with dryRun %t it answers %+v", dry, got)
		}
	}
	refused(t, "an undo of nothing", w.post("/api/runs/"+ended+"/finish", `{"action":"undo"}`), 409)
}

// The page gets the last finish and the one that an undo takes back, without those before.
func TestPGE_11_ARunSaysWhatAnUndoTakesBack(t *testing.T) {
	w := furnished(t)
	got := decode[dto.RunDetail](t, w.get("/api/runs/"+working)).Worktree
	if got == nil || got.Landing == nil || got.Landed == nil || got.Landed.On != "main" || *got.Landing != *got.Landed {
		t.Errorf("its worktree is %+v", got)
	}
}

func TestJOB_18_TheDiffTheCommentsAndTheFinishOfARun(t *testing.T) {
	w := furnished(t)
	run := "/api/runs/" + working
	diff := decode[dto.RunDiff](t, w.get(run+"/diff"))
	if diff.Base != "3f6c1f0" || diff.Head != "9c0a41d" || len(diff.Files) != 2 || diff.Files[0].Patch == "" || diff.Files[1].From != "logo.png" || !diff.Files[1].Binary {
		t.Errorf("the diff is %+v", diff)
	}
	statement := decode[dto.Said](t, w.post(run+"/comments", `{"comments":[{"path":"parser.go","line":1,"side":"new","body":"Why two?"}]}`))
	if statement.Job != working || *statement.Delivery != job.ToRunning {
		t.Errorf("of comments it says %+v", statement)
	}
	done := decode[dto.Finished](t, w.post(run+"/finish", `{"action":"squash","message":"Two"}`))
	if !done.Done || done.Commit != "Two" || done.Action != "squash" || done.Checkout != "/src/app" {
		t.Errorf("it is finished as %+v", done)
	}
	tried := decode[dto.Finished](t, w.post(run+"/finish", `{"action":"merge","dryRun":true}`))
	if tried.Done || len(tried.Conflicts) != 1 {
		t.Errorf("the dry run says %+v", tried)
	}
	met := w.post(run+"/finish", `{"action":"merge"}`)
	if met.status != 409 {
		t.Fatalf("status %d: %s", met.status, met.body)
	}
	if got := decode[dto.Conflicting](t, answer{status: 200, body: met.body}); got.Error.Error == "" || len(got.Conflicts) != 1 || got.Done {
		t.Errorf("it meets %+v", got)
	}
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{run + "/finish", `{"action":"apply"}`, 409},
		{run + "/finish", `{"action":"push"}`, 400},
		{run + "/finish", `{"action":"squash","force":true}`, 400},
		{run + "/comments", `{"comments":[]}`, 400},
		{run + "/comments", `{"comments":[{"path":"../token","line":1,"side":"new","body":"x"}]}`, 400},
		{run + "/comments", `{"comments":[{"path":"a","line":1,"side":"left","body":"x"}]}`, 400},
		{"/api/runs/codex-job-ffffffff/finish", `{"action":"squash"}`, 404},
		{"/api/runs/codex-job-ffffffff/comments", `{"comments":[{"path":"a","line":1,"body":"x"}]}`, 404},
	} {
		refused(t, tt.path+" "+tt.body, w.post(tt.path, tt.body), tt.status)
	}
	refused(t, "the turns of another run", w.get("/api/runs/codex-job-ffffffff/turns"), 404)
	refused(t, "the diff of another run", w.get("/api/runs/codex-job-ffffffff/diff"), 404)
}

func TestJOB_10_TheLogIsReadByOffset(t *testing.T) {
	w := furnished(t)
	if got := decode[dto.RunLog](t, w.get("/api/runs/"+working+"?from=25")); got.Text != "" || got.Next != 25 || got.Size != 25 {
		t.Errorf("at its end it is %+v", got)
	}
	for from, status := range map[string]int{"26": 400, "-1": 400, "x": 400, "": 400, "01": 400} {
		refused(t, "from="+from, w.get("/api/runs/"+working+"?from="+from), status)
	}
	refused(t, "another run", w.get("/api/runs/codex-job-ffffffff?from=0"), 404)
	refused(t, "another run", w.get("/api/runs/codex-job-ffffffff"), 404)
	refused(t, "a path", w.get("/api/runs/..%2Fjobs?from=0"), 404)
}

func TestJOB_07_AnAnswerThatComesTooLateMeetsThePresentRecord(t *testing.T) {
	w := furnished(t)
	answered := decode[dto.Approval](t, w.post("/api/approvals/q-2", `{"decision":"deny","reason":"not the folder out"}`))
	if answered.State != job.ApprovalAnswered || answered.Decision != job.Deny || answered.AnsweredBy != "you" || answered.Reason != "not the folder out" {
		t.Errorf("the record is %+v: it is answered, and nothing more", answered)
	}
	late := w.post("/api/approvals/q-1", `{"decision":"deny"}`)
	if late.status != 409 {
		t.Fatalf("status %d: %s", late.status, late.body)
	}
	if got := decode[dto.AnsweredBefore](t, answer{status: 200, body: late.body}); got.Error.Error == "" || got.Approval.Decision != job.Allow || got.Approval.State != job.ApprovalDelivered {
		t.Errorf("it meets %+v", got)
	}
	for body, status := range map[string]int{
		`{"decision":"maybe"}`: 400, `{}`: 400, `{"decision":"allow","always":true}`: 400, ``: 400, `[]`: 400,
		`{"decision":"allow","reason":"` + strings.Repeat("x", 400<<10) + `"}`: 413,
	} {
		refused(t, body[:min(40, len(body))], w.post("/api/approvals/q-2", body), status)
	}
	refused(t, "no such approval", w.post("/api/approvals/q-3", `{"decision":"allow"}`), 404)
}

func TestJOB_05_WordsAndSettingsAreToldApart(t *testing.T) {
	w := furnished(t)
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"message", `{"job":"` + working + `","body":"also the docs"}`, 200},
		{"message", `{"job":"` + working + `","body":" "}`, 400},
		{"message", `{"job":"` + working + `"}`, 400},
		{"message", `{"job":"` + working + `","body":"x","title":"y"}`, 400},
		{"message", `{"job":"` + working + `","body":"x","approval_id":"q-2","decision":"allow"}`, 400},
		{"message", `{"job":"` + working + `","body":"` + strings.Repeat("x", bridge.MaxOwnerBodyChars+1) + `"}`, 413},
		{"message", `{"job":"codex-api","body":"x"}`, 400},
		{"message", `{"job":"codex-job-ffffffff","body":"x"}`, 404},
		{"settings", `{"job":"` + working + `","title":"Parser"}`, 200},
		{"settings", `{"job":"` + working + `"}`, 400},
		{"settings", `{"job":"` + working + `","title":""}`, 400},
		{"settings", `{"job":"` + working + `","access":"full"}`, 400},
		{"settings", `{"job":"` + working + `","body":"x"}`, 400},
		{"cancel", `{"job":"` + working + `"}`, 200},
		{"cancel", `{"job":"` + working + `","body":"x"}`, 400},
		{"cancel", `{"job":""}`, 400},
		{"cancel", `{"job":"codex-job-ffffffff"}`, 404},
	} {
		a := w.post("/api/subagents/"+tt.path, tt.body)
		what := tt.path + " " + tt.body[:min(80, len(tt.body))]
		if tt.status != 200 {
			refused(t, what, a, tt.status)
			continue
		}
		if statement := decode[dto.Said](t, a); statement.Job != working || (statement.Delivery != nil) != (tt.path == "message") {
			t.Errorf("%s: %+v", what, statement)
		}
	}
}

func TestWhereNoJobsAreServedListsAreEmptyAndTheRestIsNotThere(t *testing.T) {
	w := newWorld(t)
	if got := w.get("/api/approvals"); got.body != `{"approvals":[]}` {
		t.Errorf("approvals: %s", got.body)
	}
	refused(t, "a run", w.get("/api/runs/"+working), 404)
	refused(t, "a log", w.get("/api/runs/"+working+"?from=0"), 404)
	refused(t, "an answer", w.post("/api/approvals/q-2", `{"decision":"allow"}`), 404)
	refused(t, "words", w.post("/api/subagents/message", `{"job":"`+working+`","body":"x"}`), 404)
	refused(t, "settings", w.post("/api/subagents/settings", `{"job":"`+working+`","title":"x"}`), 404)
	refused(t, "turns", w.get("/api/runs/"+working+"/turns"), 404)
	refused(t, "a diff", w.get("/api/runs/"+working+"/diff"), 404)
	refused(t, "comments", w.post("/api/runs/"+working+"/comments", `{"comments":[{"path":"a","line":1,"body":"x"}]}`), 404)
	refused(t, "a finish", w.post("/api/runs/"+working+"/finish", `{"action":"squash"}`), 404)
	refused(t, "an end", w.post("/api/subagents/cancel", `{"job":"`+working+`"}`), 404)
}

// NoteDelivery knows of no words.
func (toldJobs) NoteDelivery(string) jobfiles.Way {
	return jobfiles.Way{State: chat.Delivered, At: fixedTime.UnixMilli() + 5_000}
}

// notedJobs remembers what was said.
type notedJobs struct {
	toldJobs
	said *[]string
}

func (n notedJobs) Say(id string, control job.Control) (api.JobMessaged, error) {
	*n.said = append(*n.said, control.Message)
	return n.toldJobs.Say(id, control)
}

func TestCHT_12_ANoteGoesToAJobAboutAVerifiedNativeChild(t *testing.T) {
	w := furnished(t)
	own := func(id string) session.Session {
		return session.Session{ID: "peer-9", Kind: bridge.Codex, Name: working, SessionID: id, Cwd: "/src", Since: fixedTime.UnixMilli()}
	}
	noted := notedJobs{said: new([]string)}
	w.board.chats.runs = pages.New(noted, nil, nil, w.board.chats.bound)
	path := "/api/jobs/" + working + "/message"
	note := `{"body":"look at the lexer","child":"child-9","target":"parent"}`
	refused(t, "without a session of the job", w.post(path, note), 409)
	w.broker.join(t, own("forged"), api.Child{ID: "child-9", Title: "lexer", State: "busy"})
	refused(t, "a child of one that took the job's name", w.post(path, note), 409)
	w.broker.leave("peer-9")
	w.broker.join(t, own("0198f0a2-0000-7000-8000-000000000001"), api.Child{ID: "child-9", Title: "lexer", State: "busy"})
	for body, status := range map[string]int{
		`{"body":"x"}`:                                     409,
		`{"body":"x","target":"parent"}`:                   409,
		`{"body":"x","child":"child-1","target":"parent"}`: 409, // that of a session
		`{"body":"","child":"child-9"}`:                    400,
		`{"body":"x","child":"child-9","target":"self"}`:   400,
		`{"body":"x","child":"child-9","cwd":"/tmp"}`:      400,
	} {
		refused(t, body, w.post(path, body), status)
	}
	for _, other := range []string{asking, ended, queued} {
		refused(t, other, w.post("/api/jobs/"+other+"/message", note), 409)
	}
	for _, other := range []string{"codex-job-ffffffff", "claude-app", "laptop%2F" + working} {
		refused(t, other, w.post("/api/jobs/"+other+"/message", note), 404)
	}
	got := decode[dto.Chat](t, w.post(path, note))
	if got.State != chat.Queued || got.Transport != chat.Parent || got.Receipt == nil || got.Detail == "" {
		t.Fatalf("it answers %+v", got)
	}
	receipt := decode[dto.Receipt](t, w.get("/api/chat-delivery/"+*got.Receipt))
	if receipt.State != chat.Delivered || receipt.Transport != chat.Parent || receipt.UpdatedAt != fixedTime.UnixMilli()+5_000 {
		t.Errorf("the receipt is %+v", receipt)
	}
	if want := []string{chat.ParentNote("child-9", "lexer", "look at the lexer")}; !slices.Equal(*noted.said, want) || len(w.broker.sent()) != 0 {
		t.Errorf("it was told %q, and %d messages were sent as mail", *noted.said, len(w.broker.sent()))
	}
}

func (toldJobs) AgentModels(_ context.Context, kind bridge.AgentKind) (api.ModelsResult, error) {
	if kind == bridge.Antigravity {
		return api.ModelsResult{}, bridge.Errorf(bridge.NotFound, "antigravity is not on this PC: agy is not on PATH")
	}
	return api.ModelsResult{Agents: []api.AgentModels{{
		Agent: bridge.Codex, AsOf: 1_795_000_000_000, Models: []api.Model{{ID: "big", Name: "Big", Efforts: []string{"low"}, Default: true}, {ID: "small"}}, Note: "n",
	}}}, nil
}

func (toldJobs) AgentUsage(context.Context, bridge.AgentKind) (api.UsageResult, error) {
	return api.UsageResult{Agents: []api.AgentUsage{{
		Agent: bridge.Codex, AsOf: 1_795_000_000_000, Plan: "plus", Limits: []api.Limit{{Name: "5 h", UsedPercent: 12.5, ResetsAt: 7}, {Name: "7 d"}},
	}, {Agent: bridge.OpenCode, Note: "not told by this CLI"}}}, nil
}

func (toldJobs) CachedUsage() []api.AgentUsage {
	return []api.AgentUsage{{Agent: bridge.Claude, AsOf: 5, Limits: []api.Limit{{Name: "five_hour", UsedPercent: 42}}}}
}

func TestJOB_21_TheModelsAndLimitsThatTheAgentsTell(t *testing.T) {
	w := furnished(t)
	models := decode[dto.Models](t, w.get("/api/models?agent=codex")).Agents
	if len(models) != 1 || models[0].Agent != bridge.Codex || models[0].AsOf != 1_795_000_000_000 || models[0].Note != "n" || len(models[0].Models) != 2 ||
		models[0].Models[0].ID != "big" || !models[0].Models[0].Default || models[0].Models[0].Efforts[0] != "low" || models[0].Models[1].Efforts == nil {
		t.Errorf("the models are %+v", models)
	}
	usage := decode[dto.Usage](t, w.get("/api/usage")).Agents
	if len(usage) != 2 || usage[0].Plan != "plus" || usage[0].Limits[0].UsedPercent != 12.5 || *usage[0].Limits[0].ResetsAt != 7 || usage[0].Limits[1].ResetsAt != nil ||
		usage[1].Note != "not told by this CLI" || usage[1].Limits == nil {
		t.Errorf("the limits are %+v", usage)
	}
	kept := decode[dto.Usage](t, w.get("/api/usage/kept")).Agents
	if len(kept) != 1 || kept[0].Agent != bridge.Claude || kept[0].AsOf != 5 || kept[0].Limits[0].UsedPercent != 42 {
		t.Errorf("what was told before is %+v", kept)
	}
	for path, status := range map[string]int{"/api/models?agent=antigravity": http.StatusNotFound, "/api/usage?agent=nobody": http.StatusBadRequest} {
		if got := w.get(path); got.status != status {
			t.Errorf("%s answers %+v, want %d", path, got, status)
		}
	}
}
