package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
)

func TestJOB_01_NamesAreAgentAndEightHexDigits(t *testing.T) {
	if got, want := Name(bridge.Codex, false, [4]byte{0, 0x1b, 0x2c, 0xff}), "codex-job-001b2cff"; got != want {
		t.Errorf("Name(codex) = %q, want %q", got, want)
	}
	if got, want := Name(ACP, true, [4]byte{1, 2, 3, 4}), "acp-ask-01020304"; got != want {
		t.Errorf("Name(acp, ask) = %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		kind, ask := rapid.SampledFrom(Kinds()).Draw(t, "kind"), rapid.Bool().Draw(t, "ask")
		name := Name(kind, ask, [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "random")))
		gotKind, gotAsk, ok := ParseName(name)
		if gotKind != kind || gotAsk != ask || !ok || bridge.CheckName(name) != nil {
			t.Errorf("ParseName(%q) = %v, %v, %v", name, gotKind, gotAsk, ok)
		}
	})
	for _, wrong := range []string{"", "codex", "codex-job-", "codex-job-1234567", "codex-job-123456789", "codex-job-1234567G", "codex-job-1234567A", "you-job-12345678", "-job-12345678", "pc/codex-job-12345678", "codex-job-12345678 "} {
		if IsName(wrong) {
			t.Errorf("IsName(%q) = true", wrong)
		}
	}
}

func TestJOB_01_SpawnArgumentsAreCheckedStrictly(t *testing.T) {
	long := strings.Repeat("x", 100_001)
	tests := []struct{ name, args, want string }{ // want is part of the sentence; "" is accepted
		{"the least", `{"prompt":"go"}`, ""},
		{"unknown", `{"prompt":"go","command":["sh"]}`, `unknown member "command"`},
		{"wrong case", `{"prompt":"go","Cwd":"/a"}`, `"Cwd"`},
		{"twice", `{"prompt":"go","prompt":"stop"}`, "given twice"},
		{"no prompt", `{}`, "prompt must not be empty"},
		{"blank prompt", `{"prompt":" \n"}`, "prompt must not be empty"},
		{"long prompt", `{"prompt":"` + long + `"}`, "at most 100000"},
		{"prompt at its limit", `{"prompt":"` + long[1:] + `"}`, ""},
		{"timeout 9", `{"prompt":"go","timeout_sec":9}`, "timeout_sec must be 10 to 86400"},
		{"timeout 10", `{"prompt":"go","timeout_sec":10}`, ""},
		{"timeout 86400", `{"prompt":"go","timeout_sec":86400}`, ""},
		{"timeout 86401", `{"prompt":"go","timeout_sec":86401}`, "timeout_sec must be 10 to 86400"},
		{"timeout 0 is given", `{"prompt":"go","timeout_sec":0}`, "timeout_sec must be 10 to 86400"},
		{"timeout with a fraction", `{"prompt":"go","timeout_sec":10.5}`, "timeout_sec"},
		{"access", `{"prompt":"go","access":"ask"}`, ""},
		{"other access", `{"prompt":"go","access":"full"}`, "use read, ask or edit"},
		{"access in capitals", `{"prompt":"go","access":"Read"}`, "use read, ask or edit"},
		{"worktree to read", `{"prompt":"go","worktree":true,"access":"read"}`, "a worktree is for a job that changes files"},
		{"relative folder", `{"prompt":"go","cwd":"src"}`, "cwd must be an absolute path"},
		{"folder of Windows", `{"prompt":"go","cwd":"C:\\src"}`, ""},
		{"drive without a folder", `{"prompt":"go","cwd":"C:src"}`, "cwd must be an absolute path"},
		{"folder with a line break", `{"prompt":"go","cwd":"/a\nb"}`, "cwd must be one line"},
		{"effort", `{"prompt":"go","effort":"x-high_2"}`, ""},
		{"effort of 21", `{"prompt":"go","effort":"` + long[:21] + `"}`, "effort must be"},
		{"effort that is a flag", `{"prompt":"go","effort":"-v"}`, "effort must be"},
		{"effort with a space", `{"prompt":"go","effort":"very high"}`, "effort must be"},
		{"model that is a flag", `{"prompt":"go","model":"--yolo"}`, "model must not begin"},
		{"title of 120", `{"prompt":"go","title":"` + long[:120] + `"}`, ""},
		{"title of 121", `{"prompt":"go","title":"` + long[:121] + `"}`, "at most 120"},
		{"title of two lines", `{"prompt":"go","title":"a\nb"}`, "title must be one line"},
		{"session with a space", `{"prompt":"go","session_id":"a b"}`, "session_id"},
		{"budget", `{"prompt":"go","budget_usd":0.5}`, ""},
		{"no budget at all", `{"prompt":"go","budget_usd":0}`, "budget_usd must be more than 0"},
		{"negative budget", `{"prompt":"go","budget_usd":-1}`, "budget_usd must be more than 0"},
		{"agent of another tool", `{"prompt":"go","agent":"gemini"}`, "spawn_acp only"},
		{"host without a folder", `{"prompt":"go","host":"desk"}`, "needs cwd"},
		{"host", `{"prompt":"go","host":"desk","cwd":"/src"}`, ""},
		{"host that is this PC", `{"prompt":"go","host":""}`, ""},
		{"host of blanks", `{"prompt":"go","host":" ","cwd":"/src"}`, "use letters"},
		{"host with grants", `{"prompt":"go","host":"desk","cwd":"/src","send_to":["a"]}`, "send_to is for jobs on this PC only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseSpawn(bridge.Codex, false, []byte(tt.args))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("ParseSpawn(%.80s) = %v, want %q", tt.args, err, tt.want)
			}
			if err != nil && bridge.CodeOf(err) == bridge.Internal {
				t.Errorf("the error has no code: %v", err)
			}
		})
	}
	if _, err := ParseSpawn(ACP, false, []byte(`{"prompt":"go"}`)); err == nil {
		t.Error("spawn_acp without an agent was accepted")
	}
}

func TestJOB_01_WhatIsLeftOutHasItsDefault(t *testing.T) {
	got, err := ParseSpawn(bridge.Claude, true, []byte(`{"prompt":"\n  Mend the parser.\nThen test it.","worktree":true}`))
	want := Request{
		Kind: bridge.Claude, Ask: true, Prompt: "\n  Mend the parser.\nThen test it.", Title: "Mend the parser.",
		Timeout: 24 * time.Hour, Access: AccessEdit, Worktree: true,
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("ParseSpawn: %v %s", err, cmp.Diff(want, got))
	}
	got, err = ParseSpawn(bridge.Claude, false, []byte(`{"prompt":"`+strings.Repeat("ä", 200)+`"}`))
	if err != nil || got.Access != AccessRead || got.Title != strings.Repeat("ä", 79)+"…" {
		t.Errorf("ParseSpawn = %q, access %s, %v", got.Title, got.Access, err)
	}
}

func TestJOB_12_GrantsAreExactAndClosedByDefault(t *testing.T) {
	for _, wrong := range []string{`"*"`, `"pc/alice"`, `""`, `"a*"`, `"alice","alice"`, `"al ice"`} {
		if _, err := ParseSpawn(bridge.Codex, false, []byte(`{"prompt":"go","send_to":[`+wrong+`]}`)); err == nil {
			t.Errorf("send_to [%s] was accepted", wrong)
		}
	}
	names := make([]string, 101)
	for i := range names {
		names[i] = fmt.Sprintf("s%d", i)
	}
	for _, count := range []int{100, 101} {
		text, _ := json.Marshal(names[:count])
		if _, err := ParseSpawn(bridge.Codex, false, []byte(`{"prompt":"go","send_to":`+string(text)+`}`)); (err == nil) != (count == 100) {
			t.Errorf("%d grants: %v", count, err)
		}
	}
	tests := []struct {
		to     string
		grants []string
		want   bool
	}{
		{"boss", nil, true},
		{"alice", nil, false},
		{"", nil, false},
		{"alice", []string{"alice"}, true},
		{"Alice", []string{"alice"}, false},
		{"alice2", []string{"alice"}, false},
		{"alice", []string{"*"}, false},
		{"*", nil, false},
		{"pc/alice", []string{"alice"}, false},
	}
	if MaySend("", "", nil) {
		t.Error("who works for nobody that is known may send to no name")
	}
	for _, tt := range tests {
		if got := MaySend(tt.to, "boss", tt.grants); got != tt.want {
			t.Errorf("MaySend(%q, boss, %q) = %v, want %v", tt.to, tt.grants, got, tt.want)
		}
	}
}

func TestJOB_05_MessageArguments(t *testing.T) {
	const job = `"job":"codex-job-0a1b2c3d"`
	tests := []struct {
		name, args string
		want       Control
		err        string
	}{
		{"words", `{` + job + `,"message":"faster"}`, Control{Message: "faster"}, ""},
		{"nothing: go on", `{` + job + `}`, Control{Message: "Go on where you stopped and finish the task."}, ""},
		{"settings alone say nothing", `{` + job + `,"access":"edit"}`, Control{Settings: Settings{Access: AccessEdit}}, ""},
		{"an answer", `{` + job + `,"approval_id":"a1","decision":"deny","reason":"no"}`, Control{ApprovalID: "a1", Decision: Deny, Reason: "no"}, ""},
		{"plain words are no answer", `{` + job + `,"message":"allow"}`, Control{Message: "allow"}, ""},
		{"a decision on nothing", `{` + job + `,"decision":"allow"}`, Control{}, "name it by approval_id"},
		{"an answer without a decision", `{` + job + `,"approval_id":"a1"}`, Control{}, "use allow or deny"},
		{"a standing answer", `{` + job + `,"approval_id":"a1","decision":"always"}`, Control{}, "use allow or deny"},
		{"an answer with words", `{` + job + `,"approval_id":"a1","decision":"allow","message":"x"}`, Control{}, "by itself"},
		{"a long reason", `{` + job + `,"approval_id":"a1","decision":"deny","reason":"` + strings.Repeat("x", 4001) + `"}`, Control{}, "at most 4000"},
		{"no job", `{"message":"x"}`, Control{}, "names no job"},
		{"a session", `{"job":"alice","message":"x"}`, Control{}, "names no job"},
		{"too many parts", `{"job":"a/b/codex-job-0a1b2c3d","message":"x"}`, Control{}, "names no job"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseMessage([]byte(tt.args))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("ParseMessage(%.90s) = %v, want %q", tt.args, err, tt.err)
				}
				return
			}
			tt.want.Job = "codex-job-0a1b2c3d"
			if err != nil || got != tt.want {
				t.Errorf("ParseMessage(%.90s) = %+v, %v", tt.args, got, err)
			}
		})
	}
	if _, err := ParseMessage([]byte(`{"job":"desk/codex-job-0a1b2c3d","message":"x"}`)); err != nil {
		t.Errorf("a job on a paired PC: %v", err)
	}
}

func TestJOB_23_HandoffArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{"to":"bob","jobs":"all"}`:                  "",
		`{"to":"bob","jobs":["codex-job-0a1b2c3d"]}`: "",
		`{"to":"bob","jobs":"some"}`:                 "at least one",
		`{"to":"bob","jobs":[]}`:                     "at least one",
		`{"to":"bob"}`:                               "at least one",
		`{"to":"bob","jobs":["alice"]}`:              "names of jobs",
		`{"to":"bob","jobs":[1]}`:                    "names of jobs",
		`{"to":"","jobs":"all"}`:                     "must not be empty",
		`{"to":"bob","jobs":"all","switch":true}`:    "unknown member",
		`{"to":"bob","jobs":{"a":1}}`:                "at least one",
		`{"to":"bob","jobs":"all","note":"` + strings.Repeat("x", 4001) + `"}`: "at most 4000",
	} {
		_, err := ParseHandoff([]byte(args))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ParseHandoff(%.60s) = %v, want %q", args, err, want)
		}
	}
}

func TestJOB_20_ProgressIsWithinItsBounds(t *testing.T) {
	for args, accepted := range map[string]bool{
		`{"percent":0}`: true, `{"percent":100}`: true, `{"percent":101}`: false, `{"percent":-1}`: false,
		`{"eta_minutes":1440}`: true, `{"eta_minutes":1441}`: false, `{"eta_minutes":-1}`: false, `{}`: false,
		`{"note":"` + strings.Repeat("x", 200) + `"}`: true, `{"note":"` + strings.Repeat("x", 201) + `"}`: false, `{"note":"a\nb"}`: false,
		`{"percent":"50"}`: false,
	} {
		if _, err := ParseProgress([]byte(args)); (err == nil) != accepted {
			t.Errorf("ParseProgress(%.40s) = %v", args, err)
		}
	}
	at := time.UnixMilli(1_000_000)
	first, _ := ParseProgress([]byte(`{"percent":99.9,"eta_minutes":2,"note":"tests"}`))
	second, _ := ParseProgress([]byte(`{"percent":0}`))
	got := Progress{}.With(first, at).With(second, at)
	want := Progress{Percent: 0, HasPercent: true, ETA: at.Add(2 * time.Minute), Note: "tests"}
	if got != want || (Progress{}.With(first, at)).Percent != 99 {
		t.Errorf("With = %+v, want %+v", got, want)
	}
	var job Job
	if job.SetProgress(got); job.Progress() != (Progress{HasPercent: true, ETA: time.UnixMilli(1_120_000), Note: "tests"}) {
		t.Errorf("Progress = %+v", job.Progress())
	}
	if !slices.Contains(Kinds(), ACP) {
		t.Error("acp is no kind of job")
	}
}

// A session's name that was typed decomposed names the session.
func TestRWM_16_JobsNameSessionsInEitherNormalForm(t *testing.T) {
	const composed, decomposed = "codex-\u00fcber", "codex-u\u0308ber"
	for _, to := range []string{composed, decomposed} {
		for _, granted := range []string{composed, decomposed} {
			if !MaySend(to, "other", []string{granted}) {
				t.Errorf("granted %q, a job may not send to %q", granted, to)
			}
		}
		if !MaySend(to, composed, nil) {
			t.Errorf("a job may not send to its supervisor as %q", to)
		}
		handoff, err := ParseHandoff([]byte(`{"to": "` + to + `", "jobs": "all"}`))
		if err != nil || handoff.To != composed {
			t.Errorf("handed to %q: %+v, %v", to, handoff, err)
		}
	}
	if MaySend("codex-uber", "other", []string{composed}) {
		t.Error("another name is the same")
	}
}
