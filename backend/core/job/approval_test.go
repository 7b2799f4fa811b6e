package job

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
)

func TestJOB_07_TenMinutesAndTheFirstAnswerWins(t *testing.T) {
	ask := func() Approval {
		return NewApproval(Approval{ID: "a", Job: "codex-job-00000001", By: "alice", Detail: "rm x"}, noon)
	}
	approval := ask()
	if err := approval.Answer("alice", Allow, "", noon.Add(10*time.Minute)); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("an answer after ten minutes: %v", err)
	}
	if approval.State != ApprovalExpired || approval.Decision != Deny {
		t.Errorf("it is %s, %s; want expired, denied", approval.State, approval.Decision)
	}
	first := ask()
	if err := first.Answer("alice", Deny, "not here", noon.Add(10*time.Minute-time.Millisecond)); err != nil {
		t.Fatalf("just in time: %v", err)
	}
	if err := first.Answer("you", Allow, "", noon); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second answer: %v", err)
	}
	if first.Decision != Deny || first.AnsweredBy != "alice" || first.Reason != "not here" {
		t.Errorf("the first answer is gone: %+v", first)
	}
	if first.Expire(noon.Add(time.Hour)) {
		t.Error("an answered one expired")
	}
}

func TestJOB_07_EveryMoveFromEveryState(t *testing.T) {
	all := []ApprovalState{ApprovalAsked, ApprovalAnswered, ApprovalDelivered, ApprovalApplied, ApprovalExpired, ApprovalWithdrawn}
	moves := map[string]struct {
		move func(*Approval) error
		from []ApprovalState // the target itself is allowed, and nothing happens
		to   ApprovalState
	}{
		"deliver":  {(*Approval).Deliver, []ApprovalState{"answered"}, "delivered"},
		"apply":    {(*Approval).Apply, []ApprovalState{"delivered"}, "applied"},
		"withdraw": {(*Approval).Withdraw, []ApprovalState{"asked", "answered", "delivered"}, "withdrawn"},
		"answer": {func(a *Approval) error {
			if a.State == ApprovalAnswered {
				return nil
			}
			return a.Answer("alice", Allow, "", noon)
		}, []ApprovalState{"asked"}, "answered"},
	}
	for name, tt := range moves {
		for _, from := range all {
			approval := Approval{State: from, AskedAt: MillisOf(noon), ExpiresAt: MillisOf(noon.Add(time.Minute))}
			err := tt.move(&approval)
			want := from
			allowed := from == tt.to
			for _, state := range tt.from {
				if state == from {
					allowed, want = true, tt.to
				}
			}
			if (err == nil) != allowed || approval.State != want {
				t.Errorf("%s from %s = %v, now %s; want %s", name, from, err, approval.State, want)
			}
		}
	}
}

func TestJOB_07_WhatIsTooLongIsRefusedAndNeverShownInPart(t *testing.T) {
	fits := NewApproval(Approval{What: "bash", Detail: strings.Repeat("ä", 15_996)}, noon)
	if fits.State != ApprovalAsked || len([]rune(fits.Detail)) != 15_996 {
		t.Errorf("16,000 characters are %s", fits.State)
	}
	long := NewApproval(Approval{What: "bash", Detail: strings.Repeat("ä", 15_997)}, noon)
	if long.State != ApprovalAnswered || long.Decision != Deny || long.AnsweredBy != "bridge" || long.Detail != "" || long.Chars != 15_997 || long.Reason == "" {
		t.Errorf("16,001 characters: %s %s by %q, detail of %d bytes", long.State, long.Decision, long.AnsweredBy, len(long.Detail))
	}
}

func TestJOB_11_AJobAllowsNothingThatAnotherAsks(t *testing.T) {
	for _, tt := range []struct {
		byJob    bool
		decision Decision
		want     bool
	}{{false, Allow, true}, {false, Deny, true}, {true, Deny, true}, {true, Allow, false}} {
		if err := CheckDecision(tt.byJob, tt.decision); (err == nil) != tt.want {
			t.Errorf("by a job %t, %s: %v", tt.byJob, tt.decision, err)
		}
	}
}

func TestJOB_22_AQuestionIsPassedUpWhileItIsOpen(t *testing.T) {
	approval := NewApproval(Approval{Job: "codex-job-00000002", By: "codex-job-00000001"}, noon)
	if err := approval.PassUp("alice", noon.Add(time.Minute)); err != nil || approval.By != "alice" || approval.PassedUp[0] != "codex-job-00000001" {
		t.Errorf("PassUp = %v, %+v", err, approval)
	}
	if approval.ExpiresAt != MillisOf(noon.Add(10*time.Minute)) {
		t.Error("passing up gave it more time")
	}
	if err := approval.PassUp("alice", noon); err == nil {
		t.Error("it was passed to whom it is put already")
	}
	if err := approval.PassUp(approval.Job, noon); err == nil {
		t.Error("it was passed to the job that asks")
	}
	if err := approval.PassUp("you", noon.Add(10*time.Minute)); err == nil || approval.State != ApprovalExpired {
		t.Errorf("after its time: %v, %s", err, approval.State)
	}
}

// TestJOB_07_ApprovalModel makes random moves and checks what must always hold: one
// decision, by the first who made it in time, and applied only what was delivered.
func TestJOB_07_ApprovalModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		approval := NewApproval(Approval{ID: "a", Job: "j", By: "alice", Detail: "x"}, noon)
		now, decided, delivered := noon, Decision(""), false
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if decided != "" && approval.Decision != decided {
					t.Fatalf("decided %s, now %s", decided, approval.Decision)
				}
				if approval.State == ApprovalApplied && (!delivered || decided == "") {
					t.Fatal("applied, though nothing was decided or delivered")
				}
				if approval.IsOpen(now) && decided != "" {
					t.Fatal("open after a decision")
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "s")) * time.Second)
			},
			"answer": func(t *rapid.T) {
				decision := rapid.SampledFrom([]Decision{Allow, Deny}).Draw(t, "decision")
				inTime := now.Sub(noon) < 10*time.Minute
				open := approval.State == ApprovalAsked
				err := approval.Answer("alice", decision, "", now)
				if (err == nil) != (open && inTime) {
					t.Fatalf("Answer = %v; open %v, in time %v", err, open, inTime)
				}
				if err == nil {
					decided = decision
				} else if open {
					decided = Deny
				}
			},
			"expire": func(*rapid.T) {
				if approval.Expire(now) {
					decided = Deny
				}
			},
			"deliver":  func(*rapid.T) { delivered = approval.Deliver() == nil || delivered },
			"apply":    func(*rapid.T) { _ = approval.Apply() },
			"withdraw": func(*rapid.T) { _ = approval.Withdraw() },
		})
	})
}

func TestApprovalFilesOfTheFieldKeepWhatIsNotOurs(t *testing.T) {
	const field = `{"id":"u","owner":"alice","job":"codex-job-00000001","agent":"codex","tool":"shell","command":"rm x","reason":"why","askedAt":1800000000000,"deadline":"2027-01-15T08:10:00Z","pid":7,"port":4000,"token":"s3cret","later":{"a":[1]}}`
	var approval Approval
	if err := json.Unmarshal([]byte(field), &approval); err != nil {
		t.Fatal(err)
	}
	if approval.State != ApprovalAsked || approval.By != "alice" || approval.What != "shell" || approval.Detail != "rm x" || approval.Why != "why" || approval.ExpiresAt != 1_800_000_600_000 {
		t.Errorf("read as %+v", approval)
	}
	if err := approval.Answer("alice", Deny, "no", noon); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(approval)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"later":{"a":[1]}`, `"deadline":"2027-01-15T08:10:00Z"`, `"token":"s3cret"`, `"state":"answered"`, `"reason":"why"`, `"answerReason":"no"`, `"decision":"deny"`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%s is not in %s", part, out)
		}
	}
}

// TestSEC_11_AQuestionIsBoundedInAllItsParts: what an agent says beside its question goes
// into the journal, a line of which is bounded.
func TestSEC_11_AQuestionIsBoundedInAllItsParts(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for name, approval := range map[string]Approval{
		"a long tool": {What: long}, "a long command": {What: "shell", Detail: long}, "a long reason": {What: "shell", Why: long}, "a long folder": {What: "shell", Cwd: long},
	} {
		data, err := NewApproval(approval, time.Now()).MarshalJSON()
		if err != nil || len(data) > 1<<18 {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	if short := NewApproval(Approval{What: "shell", Detail: "ls", Why: "to look", Cwd: "/src"}, time.Now()); short.Why != "to look" || short.Cwd != "/src" || short.What != "shell" || short.Detail != "ls" {
		t.Errorf("a short one became %+v", short)
	}
}
