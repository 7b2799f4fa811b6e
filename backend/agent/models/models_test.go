package models

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// scripts are stand-ins that say what each CLI was seen to say.
var scripts = map[bridge.AgentKind]string{
	bridge.Claude: `while read -r line; do case $line in
*initialize*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"initialize","response":{"models":[{"value":"default","displayName":"Default","supportedEffortLevels":["low","high"]},{"value":"opus","displayName":"Opus"}]}}}';;
*get_usage*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"get_usage","response":{"subscription_type":"max","rate_limits_available":true,"rate_limits":{"five_hour":{"utilization":42,"resets_at":"2026-11-22T20:00:00Z"},"other":null}}}}';;
esac; done`,
	bridge.Codex: `echo junk; while read -r line; do case $line in
*'"initialize"'*) echo '{"id":"initialize","result":{}}'; echo '{"method":"remoteControl/status/changed","params":{}}';;
*account/rateLimits/read*) echo '{"id":"account/rateLimits/read","result":{"rateLimits":{"planType":"plus","primary":{"usedPercent":12,"windowDurationMins":300,"resetsAt":1795370000},"secondary":{"usedPercent":3,"windowDurationMins":10080,"resetsAt":1795870000}}}}';;
*account/read*) echo '{"id":"account/read","result":{"account":{"type":"'${ACCOUNT-chatgpt}'"}}}';;
*config/read*) echo '{"id":"config/read","result":{"config":{"model_provider":null}}}';;
*model/list*) echo '{"id":"model/list","result":{"data":[{"id":"big","model":"big","displayName":"Big","isDefault":true,"supportedReasoningEfforts":[{"reasoningEffort":"low"}]}],"nextCursor":null}}';;
esac; done`,
	bridge.OpenCode: `echo fake/small; echo fake/large; [ -z "$OPENCODE_FAILS" ] || { echo "it is broken" >&2; exit 1; }`,
}

// pc is a PC with these agents; asked counts how often each was started.
func pc(t *testing.T, kinds ...bridge.AgentKind) (b *Book, asked func(bridge.AgentKind) int) {
	t.Helper()
	bin := t.TempDir()
	programs := map[bridge.AgentKind]string{bridge.Claude: "claude", bridge.Codex: "codex", bridge.OpenCode: "opencode"}
	for _, kind := range kinds {
		text := "#!/bin/sh\necho x >> " + filepath.Join(bin, string(kind)+".count") + "\n" + scripts[kind] + "\n"
		if err := testkit.WriteProgram(filepath.Join(bin, programs[kind]), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b = &Book{
		Settings: func() (config.Settings, error) { return config.Settings{}, nil },
		Where:    agent.Lookup{Env: func(name string) string { return map[string]string{"PATH": bin}[name] }},
		Now:      time.Now,
		QueriesOf: func(kind bridge.AgentKind) Queries {
			return map[bridge.AgentKind]Queries{bridge.Claude: Claude, bridge.Codex: Codex, bridge.OpenCode: OpenCode, bridge.Antigravity: Antigravity}[kind]
		},
	}
	return b, func(kind bridge.AgentKind) int {
		raw, _ := os.ReadFile(filepath.Join(bin, string(kind)+".count"))
		return strings.Count(string(raw), "x")
	}
}

func TestJOB_21_WhatTheCLIsTellOfTheirModels(t *testing.T) {
	b, _ := pc(t, bridge.Claude, bridge.Codex, bridge.OpenCode)
	now := time.UnixMilli(1795000000000)
	b.Now = func() time.Time { return now }
	got, err := b.Models(t.Context(), "")
	want := api.ModelsResult{Agents: []api.AgentModels{
		{Agent: bridge.Claude, AsOf: now.UnixMilli(), Note: "full names of models, too", Models: []api.Model{
			{ID: "default", Name: "Default", Efforts: []string{"low", "high"}, Default: true}, {ID: "opus", Name: "Opus"},
		}},
		{Agent: bridge.Codex, AsOf: now.UnixMilli(), Models: []api.Model{{ID: "big", Name: "Big", Efforts: []string{"low"}, Default: true}}},
		{Agent: bridge.OpenCode, AsOf: now.UnixMilli(), Models: []api.Model{{ID: "fake/small"}, {ID: "fake/large"}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := b.Models(t.Context(), bridge.Antigravity); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("one that is not here: %v", err)
	}
}

// Who only glances starts no program, and hears no failure as an answer.
func TestJOB_21_WhatWasToldOfLimitsIsToldAgainWithoutAsking(t *testing.T) {
	b, asked := pc(t, bridge.Claude, bridge.Codex)
	now := time.UnixMilli(1795000000000)
	b.Now = func() time.Time { return now }
	if got := b.CachedUsage(); len(got) != 0 || got == nil || asked(bridge.Claude) != 0 {
		t.Errorf("before the first question: %+v, asked %d times", got, asked(bridge.Claude))
	}
	result, err := b.Usage(t.Context(), bridge.Claude)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if diff := cmp.Diff(result.Agents, b.CachedUsage()); diff != "" {
		t.Errorf("an hour later:\n%s", diff)
	}
	if claude, codex := asked(bridge.Claude), asked(bridge.Codex); claude != 1 || codex != 0 {
		t.Errorf("claude was started %d times, codex %d times", claude, codex)
	}
	b.usage.answers["codex\x00/bin/codex"] = answer[account]{err: context.DeadlineExceeded, asOf: now}
	if got := b.CachedUsage(); len(got) != 1 || got[0].Agent != bridge.Claude {
		t.Errorf("beside a failure: %+v", got)
	}
}

func TestJOB_21_WhatTheCLIsTellOfTheirLimits(t *testing.T) {
	b, _ := pc(t, bridge.Claude, bridge.Codex, bridge.OpenCode)
	now := time.UnixMilli(1795000000000)
	b.Now = func() time.Time { return now }
	got, err := b.Usage(t.Context(), "")
	want := api.UsageResult{Agents: []api.AgentUsage{
		{Agent: bridge.Claude, AsOf: now.UnixMilli(), Plan: "max", Limits: []api.Limit{{Name: "five_hour", UsedPercent: 42, ResetsAt: 1795377600000}}},
		{Agent: bridge.Codex, AsOf: now.UnixMilli(), Plan: "plus", Limits: []api.Limit{{Name: "5 h", UsedPercent: 12, ResetsAt: 1795370000000}, {Name: "7 d", UsedPercent: 3, ResetsAt: 1795870000000}}},
		{Agent: bridge.OpenCode, AsOf: now.UnixMilli(), Limits: []api.Limit{}, Note: "not told by this CLI"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// An answer is kept 10 and 5 minutes, a failure one, and one question is under way
// for all who want its answer.
func TestJOB_21_AnswersAreKept(t *testing.T) {
	tests := []struct {
		keep   time.Duration
		failed error
		at     []time.Duration // when it is asked for
		want   int             // how often the CLI was
	}{
		{keepModels, nil, []time.Duration{0, 10*time.Minute - 1}, 1},
		{keepModels, nil, []time.Duration{0, 10 * time.Minute}, 2},
		{keepUsage, nil, []time.Duration{0, 5*time.Minute - 1, 5 * time.Minute}, 2},
		{keepModels, fmt.Errorf("broken"), []time.Duration{0, time.Minute - 1, time.Minute}, 2},
	}
	for _, tt := range tests {
		var k cache[int]
		asked := 0
		start := time.Now()
		for _, at := range tt.at {
			_, err := k.get(t.Context(), "k", tt.keep, func() time.Time { return start.Add(at) }, func(context.Context) (int, error) {
				asked++
				return asked, tt.failed
			})
			if err != tt.failed { //nolint:errorlint // it is that very one
				t.Errorf("%+v: %v", tt, err)
			}
		}
		if asked != tt.want {
			t.Errorf("%+v: asked %d times", tt, asked)
		}
	}
}

func TestJOB_21_AQuestionIsAskedOnceAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k cache[int]
		asked := 0
		slow := func(ctx context.Context) (int, error) {
			asked++
			<-ctx.Done()
			return 0, ctx.Err()
		}
		begun := time.Now()
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.get(hasty, "k", keepModels, time.Now, slow); err == nil || time.Since(begun) != time.Second {
			t.Errorf("who waits a second has %v after %v", err, time.Since(begun))
		}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				if _, err := k.get(t.Context(), "k", keepModels, time.Now, slow); err == nil {
					t.Error("there is an answer")
				}
			})
		}
		wait.Wait()
		if took := time.Since(begun); asked != 1 || took != askTime {
			t.Errorf("asked %d times in %v, want once and %v", asked, took, askTime)
		}
	})
}

func TestJOB_21_AnUnknownModelIsRefusedWhereTheListIsWhole(t *testing.T) {
	tests := []struct {
		kind  bridge.AgentKind
		model string
		env   string
		words string // "" is taken
	}{
		{kind: bridge.OpenCode, model: "fake/small"},
		{kind: bridge.OpenCode, model: "fake/huge", words: `opencode has no model "fake/huge": it offers fake/small, fake/large`},
		{kind: bridge.OpenCode, model: "fake/huge", env: "OPENCODE_FAILS"}, // it could not tell
		{kind: bridge.OpenCode},
		{kind: bridge.Codex, model: "big"},
		{kind: bridge.Codex, model: "huge", words: `codex has no model "huge": it offers big`},
		{kind: bridge.Codex, model: "huge", env: "ACCOUNT"}, // by key: the provider knows more
		{kind: bridge.Claude, model: "claude-sonnet-4-5"},   // it takes full names, too
		{kind: bridge.Antigravity, model: "x", words: "antigravity is not on this PC: agy is not on PATH"},
		{kind: job.ACP, words: `there is no agent "" in agents.acp`},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind)+" "+tt.model+" "+tt.env, func(t *testing.T) {
			if tt.env != "" {
				t.Setenv(tt.env, "apikey")
			}
			b, asked := pc(t, bridge.Claude, bridge.Codex, bridge.OpenCode)
			err := b.Check(t.Context(), job.Request{Kind: tt.kind, Model: tt.model})
			if tt.words == "" && err != nil || tt.words != "" && (bridge.CodeOf(err) != bridge.NotFound || !strings.HasPrefix(err.Error(), tt.words)) {
				t.Errorf("Check = %v, want %q", err, tt.words)
			}
			if tt.model == "" && asked(tt.kind) != 0 {
				t.Error("it was asked for a model that nobody wants")
			}
		})
	}
}

// A CLI that does not answer is ended with all that it started.
func TestJOB_21_ACLIThatHangsIsEnded(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	program := filepath.Join(t.TempDir(), "hangs")
	if err := testkit.WriteProgram(program, []byte("#!/bin/sh\necho $$ > "+started+"\nsleep 1000 & wait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	err := talk(ctx, []string{program}, os.Environ(), []string{"x"}, func([]byte) bool { return false })
	testkit.Within(t, 20*time.Second, time.Since(begun), "talk ended")
	if err == nil {
		t.Error("talk = nil")
	}
}
