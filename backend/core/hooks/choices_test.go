package hooks

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

const colours = `[{"question":"Which colour?","header":"Colour","options":[{"label":"Red","description":"like fire","preview":"a\nb"},{"label":"Blue","description":""}],"multiSelect":false},` +
	`{"question":"Which days?","header":"Days","options":[{"label":"Mon","description":"first"},{"label":"Tue","description":"second"}],"multiSelect":true}]`

func TestNED_02_WhatClaudesModelAsksIsAnsweredByWhatWasChosen(t *testing.T) {
	asked := fmt.Sprintf(`{"questions":%s,"metadata":{"source":"x"}}`, colours)
	p, err := ParseHeldPrompt(bridge.Claude, claudeAsks("AskUserQuestion", asked))
	if err != nil || p.Kind != AsksQuestion || p.OnlyTold != "" {
		t.Fatalf("%+v, %v", p, err)
	}
	want := []bridge.Choice{
		{Question: "Which colour?", Header: "Colour", Options: []bridge.ChoiceOption{{Label: "Red", Description: "like fire", Preview: "a\nb"}, {Label: "Blue"}}, Words: true},
		{Question: "Which days?", Header: "Days", Options: []bridge.ChoiceOption{{Label: "Mon", Description: "first"}, {Label: "Tue", Description: "second"}}, Several: true, Words: true},
	}
	if !reflect.DeepEqual(p.Choices, want) {
		t.Errorf("choices %+v", p.Choices)
	}
	if text := "Colour: Which colour?\n  - Red: like fire\n    a\n    b\n  - Blue\nDays: Which days? (several)\n  - Mon: first\n  - Tue: second\nmetadata: {\n  \"source\": \"x\"\n}"; p.Detail != text {
		t.Errorf("detail %q", p.Detail)
	}

	var said struct {
		HookSpecificOutput struct {
			Decision struct {
				Behavior     string
				UpdatedInput map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(p.Decision(true, "", [][]string{{"Blue"}, {"Mon", "my own"}}), &said); err != nil {
		t.Fatal(err)
	}
	decision := said.HookSpecificOutput.Decision
	input := map[string]string{}
	for name, raw := range decision.UpdatedInput {
		input[name] = string(raw)
	}
	if decision.Behavior != "allow" || !reflect.DeepEqual(input, map[string]string{
		"questions": colours, "metadata": `{"source":"x"}`, "answers": `{"Which colour?":"Blue","Which days?":"Mon, my own"}`,
	}) {
		t.Errorf("claude is told %s %v", decision.Behavior, input)
	}
	if out := string(p.Decision(false, "not now", nil)); !strings.Contains(out, `"behavior":"deny"`) || !strings.Contains(out, `"not now"`) {
		t.Errorf("a refusal: %s", out)
	}
	for _, answers := range [][][]string{nil, {}, {{"Red"}}} {
		if out := p.Decision(true, "", answers); out != nil {
			t.Errorf("with answers %v claude is told %s, which it ignores", answers, out)
		}
	}

	// What ran has the answers beside its questions, and is the same call.
	done := fmt.Sprintf(`{"questions":%s,"answers":{"Which colour?":"Blue"}}`, strings.ReplaceAll(colours, `,"multiSelect":false`, ""))
	for input, same := range map[string]bool{asked: true, done: true, strings.ReplaceAll(done, "Which colour?", "Which?"): false} {
		ran, err := For(bridge.Claude).ParseHook("PostToolUse", claudeAsks("AskUserQuestion", input))
		if err != nil || (ran.Tool == p.Call.Tool) != same {
			t.Errorf("%s: the same call is %t, %v", input, !same, err)
		}
	}
}

func TestNED_02_APlanIsTheSameCallWithItsText(t *testing.T) {
	p, err := ParseHeldPrompt(bridge.Claude, claudeAsks("ExitPlanMode", `{}`))
	ran, err2 := For(bridge.Claude).ParseHook("PostToolUse", claudeAsks("ExitPlanMode", `{"plan":"x","filePath":"/p"}`))
	if err != nil || err2 != nil || p.OnlyTold == "" || ran.Tool != p.Call.Tool {
		t.Errorf("%+v, %+v; %v %v", p, ran, err, err2)
	}
	if out := p.Decision(true, "", nil); out != nil {
		t.Errorf("a plan that nobody could read is approved by %s", out)
	}
}

// What cannot be put or answered exactly is answered in the terminal.
func TestNED_02_AQuestionThatIsNotUnderstoodIsOnlyTold(t *testing.T) {
	option := `{"label":"A","description":"a"},{"label":"B","description":"b"}`
	for _, questions := range []string{
		`[]`, `{}`, `"x"`, `[{"question":"","options":[` + option + `]}]`,
		`[{"question":"Q","options":[` + option + `],"new":1}]`,
		`[{"question":"Q","options":[{"label":"A","new":1}]}]`,
		`[{"question":"Q","kind":"number","options":[],"min":1,"max":2}]`,
		`[{"question":"Q","kind":"text","options":[]}]`,
		`[{"question":"Q","options":[` + option + `,{"label":"A"}]}]`,
		`[{"question":"Q","options":[{"label":" "}]}]`,
		`[{"question":"Q","options":[` + option + `]},{"question":"Q","options":[` + option + `]}]`,
	} {
		p, err := ParseHeldPrompt(bridge.Claude, claudeAsks("AskUserQuestion", `{"questions":`+questions+`}`))
		if err != nil || p.OnlyTold == "" || p.Choices != nil || !strings.Contains(strings.Join(strings.Fields(p.Detail), ""), strings.Join(strings.Fields(questions), "")) {
			t.Errorf("%s: %+v, %v", questions, p, err)
		}
	}
	for _, questions := range []string{`[{"question":"Q","options":[],"custom":false}]`, `[{"question":"Q","options":[],"x":1}]`, `{}`} {
		p, err := ParsePluginPrompt(bridge.OpenCode, PluginPrompt{ID: "que_1", Call: json.RawMessage(`{"sessionId":"ses_1"}`), Questions: json.RawMessage(questions)})
		if err != nil || p.OnlyTold == "" || p.Choices != nil || p.Detail != questions {
			t.Errorf("opencode %s: %+v, %v", questions, p, err)
		}
	}
}

func TestNED_02_WhatOpenCodesModelAsksIsShown(t *testing.T) {
	questions := `[{"question":"Which?","header":"Q","options":[{"label":"A","description":"a"}],"multiple":true,"custom":false},{"question":"Why?","header":"W","options":[]}]`
	p, err := ParsePluginPrompt(bridge.OpenCode, PluginPrompt{ID: "que_1", Call: json.RawMessage(`{"sessionId":"ses_1"}`), Questions: json.RawMessage(questions)})
	want := []bridge.Choice{
		{Question: "Which?", Header: "Q", Options: []bridge.ChoiceOption{{Label: "A", Description: "a"}}, Several: true},
		{Question: "Why?", Header: "W", Options: []bridge.ChoiceOption{}, Words: true},
	}
	if err != nil || p.Kind != AsksQuestion || p.What != "question" || p.OnlyTold != "" || p.Caution == "" || !reflect.DeepEqual(p.Choices, want) {
		t.Errorf("%+v, %v", p, err)
	}
	if p.Detail != "Q: Which? (several)\n  - A: a\nW: Why?" {
		t.Errorf("detail %q", p.Detail)
	}
}
