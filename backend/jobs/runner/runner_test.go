package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/testing/testkit"
)

func TestJOB_03_AJobRunsFromItsSpecToItsEnvelope(t *testing.T) {
	b := newBench(t)
	spec := b.spec("do echo seen\nsay all done")
	envelope := b.run()
	if envelope.State != job.Finished || envelope.Result != "all done" || envelope.MessageID != runs.ResultID(jobName, 1) {
		t.Errorf("the envelope says %+v", envelope)
	}
	if prompts := b.entries(EntryPrompt); len(prompts) != 1 || prompts[0].Text != spec.Prompt || prompts[0].ID != spec.PromptID {
		t.Errorf("the journal has the prompts %+v", prompts)
	}
	if sent := b.entries(EntrySent); len(sent) != 1 || sent[0].ID != spec.PromptID || sent[0].Error != "" {
		t.Errorf("the journal has as sent %+v", sent)
	}
	state := b.state()
	if state.State != job.Finished || state.Session == "" || len(state.Processes) != 0 || state.Tokens != 17 {
		t.Errorf("the state at the end is %+v", state)
	}
	report := b.broker.until(b, "the result", func(r api.RunnerReport) bool { return r.Result != nil })
	if *report.Result != (api.RunnerResult{Run: 1, MessageID: envelope.MessageID, State: job.Finished, Bytes: fileSize(t, b.folder, "envelope.json")}) {
		t.Errorf("the result was told as %+v", report.Result)
	}
	if log := readFile(t, b.home, "runs", jobName+".log"); !strings.Contains(log, "$ Bash echo seen\n= done") || !strings.Contains(log, "all done") {
		t.Errorf("the log says %q", log)
	}
}

func TestPGE_05_TheLogOfAContinuedJobHasItsTurnsAndTheirMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  int
		by   []string
		want string // "" for no line
	}{
		{"the first turn", 1, []string{"api"}, ""},
		{"of the owner", 2, []string{"you"}, "@ turn 2 from you, "},
		{"of two, one with a line break in the name", 3, []string{"you", "a\nb"}, `@ turn 3 from you, a\nb, `},
		{"of an unknown author", 2, nil, "@ turn 2, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.spec("say done", func(s *runs.SpecFile) { s.Run, s.PromptBy = tt.run, tt.by })
			b.run()
			log := readFile(t, b.home, "runs", jobName+".log")
			line, rest, _ := strings.Cut(log, "\n")
			if tt.want == "" {
				if strings.Contains(log, "@ turn") {
					t.Errorf("the log says %q", log)
				}
				return
			}
			at, isTurn := strings.CutPrefix(line, tt.want)
			if _, err := time.Parse(time.RFC3339, at); !isTurn || err != nil || !strings.HasPrefix(rest, "> say done\n") {
				t.Errorf("the log says %q (%v)", log, err)
			}
		})
	}
}

// The result is told again until a broker has it, by the envelope alone.
func TestJOB_03_AResultIsToldAgainAndTheJobNeverRunsTwice(t *testing.T) {
	b := newBench(t)
	b.spec("do echo x >> " + b.work + "/ran\nsay done")
	b.broker.keeps, b.wait = true, 300*time.Millisecond
	b.at = func(step Step) {
		if step == StepDelivered {
			t.Error("a result that no broker took counts as delivered")
		}
	}
	first := b.run()
	b.broker, b.wait, b.at = newMemory(), testkit.Patience, nil
	second := b.run()
	if first.MessageID != second.MessageID || first.WrittenAt != second.WrittenAt {
		t.Errorf("the envelopes are %+v and %+v", first, second)
	}
	if ran := readFile(t, b.work, "ran"); ran != "x\n" {
		t.Errorf("it ran: %q", ran)
	}
	if hellos := b.broker.hellos; len(hellos) == 0 || hellos[0].Token == "" {
		t.Errorf("the second runner said %+v", hellos)
	}
}

// A job's own caches are needed by nobody when its run has ended; its other temporary files
// stay.
func TestRWM_22_ARunsCachesEndWithIt(t *testing.T) {
	b := newBench(t)
	b.spec("say done")
	for _, name := range []string{"tmp/cache/go-build", "tmp/other", "shm"} {
		if err := os.MkdirAll(filepath.Join(b.folder, filepath.FromSlash(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.run()
	for name, want := range map[string]bool{"tmp/cache": false, "shm": false, "tmp/other": true} {
		if got := b.exists(filepath.Join(b.folder, filepath.FromSlash(name))); got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
}

// floored is an agent with something below it, which answers at once.
type floored struct {
	*player
	floor job.Floor
}

func (f floored) Start(_ context.Context, spec job.Spec) (job.Run, error) {
	f.says(job.Spawned{Floor: f.floor}, job.Opened{Session: "s1"}, job.Accepted{Message: spec.Prompt.ID}, job.Text{Text: "done"})
	f.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
	return f.player, nil
}

// The log of a run says in which folders its job can write, where something else than the
// agent's word keeps it to them.
func TestRWM_22_TheLogSaysWhereAJobCanWrite(t *testing.T) {
	for _, access := range []job.Access{job.AccessRead, job.AccessAsk, job.AccessEdit} {
		for _, floor := range []job.Floor{job.FloorNone, job.FloorSandbox, job.FloorOwn} {
			b := newBench(t)
			b.drive = floored{newPlayer(), floor}
			b.spec("work", func(s *runs.SpecFile) { s.Access = access })
			b.run()
			want := access != job.AccessRead && floor != job.FloorNone
			if log := readFile(t, b.home, "runs", jobName+".log"); strings.Contains(log, "+ This job can write in "+b.work) != want {
				t.Errorf("%s, %s: the log says %q", access, floor, log)
			}
		}
	}
}

// seenSpec is floored, and keeps the folders that its agent was started with.
type seenSpec struct {
	floored
	writable *[]string
}

func (s seenSpec) Start(ctx context.Context, spec job.Spec) (job.Run, error) {
	*s.writable = spec.Writable
	return s.floored.Start(ctx, spec)
}

// The owner may name more folders for jobs that edit.
func TestRWM_22_JobsWriteInTheFoldersThatTheOwnerNames(t *testing.T) {
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	gone := filepath.Join(folder, "gone")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		access   job.Access
		unlinked bool
		named    string
		want     bool
		log      string // what the log also says
		fails    string
	}{
		{name: "edit", access: job.AccessEdit, named: folder, want: true, log: ", " + folder + " and in a temporary folder"},
		{name: "ask", access: job.AccessAsk, named: folder, want: true, log: ", " + folder + " and in a temporary folder"},
		{name: "read", access: job.AccessRead, named: folder},
		{name: "of a paired PC", access: job.AccessEdit, unlinked: true, named: folder},
		{name: "not there", access: job.AccessEdit, named: gone, log: "! " + gone + " of jobs.writable is not there, so this job cannot write in it."},
		{name: "a file", access: job.AccessEdit, named: file, fails: "jobs.writable names " + file + ", which is a file: name its folder"},
		{name: "reserved", access: job.AccessEdit, named: "/", fails: "/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			var got []string
			b.drive, b.writable, b.reserved = seenSpec{floored{newPlayer(), job.FloorSandbox}, &got}, []string{tt.named}, tt.named == "/"
			b.spec("work", func(s *runs.SpecFile) { s.Access, s.Unlinked = tt.access, tt.unlinked })
			envelope := b.run()
			if slices.Contains(got, tt.named) != tt.want {
				t.Errorf("its agent writes in %q", got)
			}
			if log := readFile(t, b.home, "runs", jobName+".log"); !strings.Contains(log, tt.log) {
				t.Errorf("the log says %q", log)
			}
			if envelope.Error != "" != (tt.fails != "") || !strings.Contains(envelope.Error, tt.fails) {
				t.Errorf("it ended as %+v", envelope)
			}
		})
	}
}

func TestARunIsBegunOnce(t *testing.T) {
	b := newBench(t)
	b.spec("say done")
	b.run()
	if err := os.Rename(filepath.Join(b.folder, "envelope.json"), filepath.Join(b.folder, "envelope-1.json")); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), b.options()); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second begin: %v", err)
	}
	b.spec("say done", func(s *runs.SpecFile) { s.Run = 2 })
	if envelope := b.run(); envelope.Run != 2 {
		t.Errorf("the next run: %+v", envelope)
	}
}

// What is no answer is an end of its own, and says so.
func TestJOB_15_EndsThatAreNoAnswer(t *testing.T) {
	tests := []struct {
		prompt string
		state  job.State
		ended  job.EndReason
		until  job.Millis
	}{
		{"fault 429", job.Limit, job.EndLimit, 1_900_000_000_000},
		{"fault refusal", job.Refused, job.EndRefusal, 0},
		{"fault empty", job.Failed, job.EndEmpty, 0},
		{"die", job.Failed, job.EndLost, 0},
	}
	for _, tt := range tests {
		t.Run(tt.prompt, func(t *testing.T) {
			b := newBench(t)
			b.spec(tt.prompt)
			envelope := b.run()
			if envelope.State != tt.state || envelope.Ended != tt.ended || envelope.Until != tt.until || envelope.Evidence.Ended != tt.ended {
				t.Errorf("the envelope says %+v", envelope)
			}
		})
	}
}

func TestJOB_07_AnAnswerIsDurableBeforeTheAgentHasIt(t *testing.T) {
	for _, decision := range []job.Decision{job.Allow, job.Deny} {
		t.Run(string(decision), func(t *testing.T) {
			b := newBench(t)
			b.spec("run touch " + b.work + "/made\nsay done")
			done := b.begin()
			approval := b.broker.asked(b, 1)
			if approval.State != job.ApprovalAsked || approval.What != "Bash" || approval.Detail != "touch "+b.work+"/made" || approval.By != "boss" {
				t.Errorf("the question is %+v", approval)
			}
			b.broker.until(b, "the wait", func(r api.RunnerReport) bool {
				return r.State.State == job.Waiting && r.State.Wait.For == job.ForApproval && r.State.Wait.ID == approval.ID
			})
			if refused := b.broker.order(b, api.Order{ID: "o1", Kind: api.OrderAnswer, Approval: approval.ID, Decision: decision, By: "boss", Reason: "because"}); refused != nil {
				t.Fatalf("the answer: %v", refused)
			}
			b.ended(done)
			if b.exists(b.work+"/made") != (decision == job.Allow) {
				t.Errorf("%s, and the command ran: %t", decision, b.exists(b.work+"/made"))
			}
			if a := b.approval(approval.ID); a.State != job.ApprovalApplied || a.Decision != decision || a.AnsweredBy != "boss" {
				t.Errorf("in the end the approval is %+v", a)
			}
			if answers := b.entries(EntryAnswer); len(answers) != 1 || answers[0].ID != approval.ID || answers[0].Decision != decision {
				t.Errorf("the journal has the answers %+v", answers)
			}
			commands := b.envelope().Evidence.Commands
			if ran := len(commands) == 1; ran != (decision == job.Allow) {
				t.Errorf("the evidence has the commands %+v", commands)
			}
		})
	}
}

func TestJOB_07_TheFirstAnswerWins(t *testing.T) {
	b := newBench(t)
	gate := b.work + "/gate"
	b.spec("run touch " + b.work + "/made\nwait " + gate + "\nsay done")
	done := b.begin()
	asked := b.broker.asked(b, 1)
	answer := func(id string, decision job.Decision, approval string) bridge.Code {
		refused := b.broker.order(b, api.Order{ID: id, Kind: api.OrderAnswer, Approval: approval, Decision: decision, By: "boss"})
		if refused == nil {
			return ""
		}
		return refused.Code
	}
	if code := answer("o1", job.Deny, asked.ID); code != "" {
		t.Errorf("the first answer: %s", code)
	}
	if code := answer("o2", job.Allow, asked.ID); code != bridge.Conflict && code != bridge.NotFound {
		t.Errorf("the second answer: %q", code)
	}
	if code := answer("o3", job.Allow, "another"); code != bridge.NotFound {
		t.Errorf("an answer to no question: %q", code)
	}
	b.touch(gate)
	b.ended(done)
	if b.exists(b.work + "/made") {
		t.Error("the refused command ran")
	}
}

func TestJOB_05_ALiveMessageReachesTheRunOnce(t *testing.T) {
	b := newBench(t)
	gate := b.work + "/gate"
	b.spec("wait " + gate + "\nsay first")
	done := b.begin()
	b.broker.until(b, "the work", func(r api.RunnerReport) bool { return r.State.State == job.Running })
	message := api.Order{ID: "0a1b2c3d-0000-4000-8000-000000000002", Kind: api.OrderMessage, Text: "do echo m >> " + b.work + "/heard\nsay second"}
	for range 2 { // a broker that lost the outcome gives it again
		if refused := b.broker.order(b, message); refused != nil {
			t.Fatalf("the message: %v", refused)
		}
	}
	if refused := b.broker.order(b, api.Order{ID: "o2", Kind: api.OrderSettings, Settings: job.Settings{Title: "another"}}); refused != nil {
		t.Fatalf("the settings: %v", refused)
	}
	b.touch(gate)
	b.ended(done)
	if envelope := b.envelope(); envelope.Result != "second" || envelope.Title != "another" {
		t.Errorf("the envelope says %+v", envelope)
	}
	if heard := readFile(t, b.work, "heard"); heard != "m\n" {
		t.Errorf("the agent heard %q", heard)
	}
	if messages := b.entries(EntryMessage); len(messages) != 1 {
		t.Errorf("the journal has the messages %+v", messages)
	}
}

func TestJOB_06_ACancelledJobSaysSo(t *testing.T) {
	b := newBench(t)
	b.spec("run sleep 1000\nsay done")
	done := b.begin()
	approval := b.broker.asked(b, 1)
	if refused := b.broker.order(b, api.Order{ID: "o1", Kind: api.OrderCancel, By: "boss"}); refused != nil {
		t.Fatal(refused)
	}
	b.ended(done)
	if envelope := b.envelope(); envelope.State != job.Cancelled || envelope.Ended != job.EndedCancelled {
		t.Errorf("the envelope says %+v", envelope)
	}
	if a := b.approval(approval.ID); a.State != job.ApprovalWithdrawn {
		t.Errorf("the question is %s", a.State)
	}
}

// The run does not need the broker: it goes on without one and tells it all later.
func TestJOB_02_TheRunOutlivesTheBroker(t *testing.T) {
	b := newBench(t)
	gate := b.work + "/gate"
	b.spec("wait " + gate + "\ndo true\nsay done")
	concluded := make(chan struct{})
	b.at = func(step Step) {
		if step == StepConcluded {
			close(concluded)
		}
	}
	done := b.begin()
	b.broker.until(b, "the work", func(r api.RunnerReport) bool { return r.State.State == job.Running })
	b.broker.setAway(bridge.Errorf(bridge.Unavailable, "nobody is there"))
	b.touch(gate)
	select {
	case <-concluded:
	case err := <-done:
		t.Fatalf("the run ended without a broker's word: %v", err)
	case <-time.After(testkit.Patience):
		t.Fatal("the run did not end")
	}
	before := len(b.broker.hellos)
	b.broker.setAway(nil)
	b.ended(done)
	if len(b.broker.hellos) != before+1 || b.broker.hellos[before].Report.State == nil {
		t.Errorf("the new broker was told %+v", b.broker.hellos[before:])
	}
}

// A run whose home was deleted can neither be read nor ended by anybody: it ends
// itself and leaves no process (JOB-06).
func TestJOB_06_ARunWhoseHomeIsGoneEnds(t *testing.T) {
	b := newBench(t)
	b.look = 10 * time.Millisecond
	b.spec("run sleep 1000\nsay done")
	done := b.begin()
	b.broker.asked(b, 1)
	var agent []job.Process
	b.broker.until(b, "the agent's processes", func(r api.RunnerReport) bool {
		if r.State != nil {
			agent = r.State.Processes
		}
		return len(agent) > 0
	})
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(b.home, away); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("the run ended with %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the run goes on")
	}
	if left := slices.DeleteFunc(agent, func(p job.Process) bool { return !orphans.Runs(p) }); len(left) > 0 {
		t.Errorf("of the agent are left %+v", left)
	}
	if _, err := os.Stat(b.home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home was made anew: %v", err)
	}
}

// Only the answer to the hello says that nobody wants the run: what else is refused
// is tried again.
func TestJOB_03_ARefusedReportIsToldAgain(t *testing.T) {
	b := newBench(t)
	b.spec("say done")
	b.broker.refuses = 3
	b.run()
	b.broker.until(b, "the result", func(r api.RunnerReport) bool { return r.Result != nil })
}

// A broker that knows of no such run sends the runner home, with the work kept.
func TestARunThatNobodyWantsKeepsItsResult(t *testing.T) {
	b := newBench(t)
	b.spec("say done")
	b.broker.away = bridge.Errorf(bridge.NotFound, "no such job")
	left := false
	b.at = func(step Step) { left = left || step == StepDelivered }
	if envelope := b.run(); envelope.State != job.Finished || !left {
		t.Errorf("it left for that: %t; the envelope says %+v", left, envelope)
	}
}

func TestAJobThatCannotStartSaysWhy(t *testing.T) {
	b := newBench(t)
	b.spec("say done", func(s *runs.SpecFile) { s.Kind = bridge.Antigravity })
	envelope := b.run()
	if envelope.State != job.Failed || envelope.Ended != job.EndedNotStarted || !strings.Contains(envelope.Error, "antigravity") {
		t.Errorf("the envelope says %+v", envelope)
	}
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fileSize(t *testing.T, parts ...string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
