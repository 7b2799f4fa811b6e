package prompt_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func asked() prompt.Prompt {
	return prompt.Ask(prompt.Prompt{Approval: job.Approval{ID: "p-1", Session: "claude-shop", Kind: "command", What: "Bash", Detail: "make clean"}}, noon)
}

func TestNED_02_APromptBecomesACardOnlyWhereItsOwnerWantsThat(t *testing.T) {
	for _, tt := range []struct {
		mode  prompt.Mode
		watch prompt.Watch
		want  bool
	}{
		{prompt.Off, prompt.Watch{}, false},
		{prompt.Off, prompt.Watch{Away: true, Page: true, Free: true}, false},
		{"", prompt.Watch{Away: true, Page: true, Free: true}, false},
		{prompt.Away, prompt.Watch{}, false},
		{prompt.Away, prompt.Watch{Page: true}, false},
		{prompt.Away, prompt.Watch{Page: true, Free: true}, false},
		{prompt.Away, prompt.Watch{Away: true}, true},
		{prompt.Always, prompt.Watch{}, false},
		{prompt.Always, prompt.Watch{Page: true}, true},
		{prompt.Always, prompt.Watch{Away: true}, true},
		{prompt.Always, prompt.Watch{Free: true}, true},
	} {
		if got := tt.mode.Shows(tt.watch); got != tt.want {
			t.Errorf("%q with %+v: %t, want %t", tt.mode, tt.watch, got, tt.want)
		}
	}
}

func TestNED_02_TheModesAreNamed(t *testing.T) {
	for raw, want := range map[string]prompt.Mode{"": prompt.Off, "off": prompt.Off, "away": prompt.Away, "always": prompt.Always} {
		if got, err := prompt.ParseMode(raw); got != want || err != nil {
			t.Errorf("ParseMode(%q) = %q, %v; want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{"on", "Always", "true", " off"} {
		if got, err := prompt.ParseMode(raw); bridge.CodeOf(err) != bridge.Invalid || got != "" {
			t.Errorf("ParseMode(%q) = %q, %v; want it refused", raw, got, err)
		}
	}
}

// Each sign in each state: what becomes of the prompt.
func TestNED_02_WhatIsSeenEndsAPrompt(t *testing.T) {
	const stays = ""
	tests := []struct {
		name     string
		decision job.Decision // "" for none
		deliver  bool
		want     map[prompt.Sign]string // applied, how it ended elsewhere, or stays
	}{
		{"asked", "", false, map[prompt.Sign]string{
			prompt.Allowed: "allowed", prompt.Refused: "refused", prompt.WentOn: "answered", prompt.Closed: "answered",
			prompt.Stopped: "stopped", prompt.Gone: "gone", prompt.Unheld: "unheld",
		}},
		{"allowed here, on its way", job.Allow, false, map[prompt.Sign]string{
			prompt.Allowed: "unclear", prompt.Refused: "refused", prompt.WentOn: "unclear", prompt.Closed: "unclear",
			prompt.Stopped: "unclear", prompt.Gone: "unclear", prompt.Unheld: "unclear",
		}},
		{"denied here, on its way", job.Deny, false, map[prompt.Sign]string{
			prompt.Allowed: "allowed", prompt.Refused: "unclear", prompt.WentOn: "unclear", prompt.Closed: "unclear",
			prompt.Stopped: "unclear", prompt.Gone: "unclear", prompt.Unheld: "unclear",
		}},
		{"allowed here, handed over", job.Allow, true, map[prompt.Sign]string{
			prompt.Allowed: "applied", prompt.Refused: "refused", prompt.WentOn: "unclear", prompt.Closed: stays,
			prompt.Stopped: stays, prompt.Gone: "unclear", prompt.Unheld: stays,
		}},
		{"denied here, handed over", job.Deny, true, map[prompt.Sign]string{
			prompt.Allowed: "allowed", prompt.Refused: "applied", prompt.WentOn: "applied", prompt.Closed: stays,
			prompt.Stopped: stays, prompt.Gone: "unclear", prompt.Unheld: stays,
		}},
	}
	for _, tt := range tests {
		for _, sign := range prompt.Signs() {
			p := asked()
			if tt.decision != "" {
				if err := p.Answer("owner", tt.decision, "", noon); err != nil {
					t.Fatal(err)
				}
			}
			if tt.deliver {
				if err := p.Deliver(); err != nil {
					t.Fatal(err)
				}
			}
			before, want := p, tt.want[sign]
			if changed := p.See(sign); changed != (want != stays) {
				t.Errorf("%s, sign %d: changed is %t", tt.name, sign, changed)
			}
			switch {
			case want == stays && (p.State != before.State || p.Elsewhere != ""):
				t.Errorf("%s, sign %d: it is %s (%s), want it as it was", tt.name, sign, p.State, p.Elsewhere)
			case want == "applied" && (p.State != job.ApprovalApplied || p.Elsewhere != ""):
				t.Errorf("%s, sign %d: it is %s (%s), want applied", tt.name, sign, p.State, p.Elsewhere)
			case want != stays && want != "applied" && (p.State != job.ApprovalWithdrawn || string(p.Elsewhere) != want):
				t.Errorf("%s, sign %d: it is %s (%s), want withdrawn (%s)", tt.name, sign, p.State, p.Elsewhere, want)
			}
		}
	}
}

func TestNED_02_WhatEndedIsToldMoreExactlyLater(t *testing.T) {
	for _, first := range []prompt.Sign{prompt.WentOn, prompt.Closed, prompt.Stopped, prompt.Gone, prompt.Unheld} {
		for then, want := range map[prompt.Sign]prompt.Elsewhere{prompt.Allowed: prompt.WasAllowed, prompt.Refused: prompt.WasRefused} {
			p := asked()
			p.See(first)
			if !p.See(then) || p.Elsewhere != want {
				t.Errorf("signs %d, %d: it is %s, want %s", first, then, p.Elsewhere, want)
			}
			if p.See(prompt.Allowed) || p.See(prompt.Refused) || p.Elsewhere != want {
				t.Errorf("signs %d, %d: it is %s after all", first, then, p.Elsewhere)
			}
		}
	}
}

func TestNED_02_WhatIsTooLongIsNotAskedHere(t *testing.T) {
	for chars, told := range map[int]bool{15_996: false, 15_997: true} {
		p := prompt.Ask(prompt.Prompt{Approval: job.Approval{What: "Bash", Detail: strings.Repeat("é", chars)}}, noon)
		if got := p.OnlyTold != ""; got != told || told != (p.Detail == "") {
			t.Errorf("%d characters and a name of 4: only told is %t, and %d are shown", chars, got, len([]rune(p.Detail)))
		}
		err := p.Answer("owner", job.Allow, "", noon)
		if told != (bridge.CodeOf(err) == bridge.Conflict) || told != (p.State == job.ApprovalAsked) {
			t.Errorf("%d characters: answered with %v, then %s", chars, err, p.State)
		}
	}
}

// In any order of what can happen: never two answers, none that nobody gave, no open
// card after its prompt is gone, and applied only with proof.
func TestNED_02_NoOrderOfEventsAnswersTwiceOrByItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := asked()
		given := job.Decision("")
		var delivered, gone bool
		proven := false
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 12).Draw(t, "steps") {
			before := p
			switch step {
			case 7, 8:
				decision := map[int]job.Decision{7: job.Allow, 8: job.Deny}[step]
				err := p.Answer("owner", decision, "why", noon)
				if (err == nil) != (given == "" && !gone) {
					t.Fatalf("answer %s in state %s gives %v", decision, before.State, err)
				}
				if err == nil {
					given = decision
				} else if p.State != before.State || p.Decision != before.Decision || p.Reason != before.Reason {
					t.Fatalf("a refused answer changed %+v to %+v", before.Approval, p.Approval)
				}
			case 9:
				if p.Deliver() == nil && before.State == job.ApprovalAnswered {
					delivered = true
				}
			default:
				sign := prompt.Sign(step)
				agrees := given == job.Allow && sign == prompt.Allowed || given == job.Deny && (sign == prompt.Refused || sign == prompt.WentOn)
				proven = proven || delivered && agrees && before.State == job.ApprovalDelivered
				changed := p.See(sign)
				if before.State == job.ApprovalAsked {
					gone = true
				}
				if !changed && p.State != before.State {
					t.Fatalf("sign %d changed %s to %s unsaid", sign, before.State, p.State)
				}
			}
			check(t, before, p, given, gone, proven)
		}
	})
}

func check(t *rapid.T, before, p prompt.Prompt, decision job.Decision, gone, proven bool) {
	over := []job.ApprovalState{job.ApprovalApplied, job.ApprovalWithdrawn}
	switch {
	case p.Decision != decision:
		t.Fatalf("it says %q, and %q was answered", p.Decision, decision)
	case (p.AnsweredBy == "owner") != (decision != ""):
		t.Fatalf("answered by %q, and %q was answered", p.AnsweredBy, decision)
	case gone && decision == "" && p.State == job.ApprovalAsked:
		t.Fatal("it stays open after its prompt is gone")
	case p.State == job.ApprovalApplied && !proven:
		t.Fatal("applied without proof")
	case slices.Contains(over, before.State) && p.State != before.State:
		t.Fatalf("it went on from %s to %s", before.State, p.State)
	case (p.State == job.ApprovalWithdrawn) != (p.Elsewhere != ""):
		t.Fatalf("it is %s, and how it ended is %q", p.State, p.Elsewhere)
	}
}

func asksItself() prompt.Prompt {
	options := []bridge.ChoiceOption{{Label: "Red"}, {Label: "Blue"}}
	return prompt.Ask(prompt.Prompt{Approval: job.Approval{ID: "p-1", Session: "claude-shop", Kind: "question", What: "AskUserQuestion", Choices: []bridge.Choice{
		{Question: "One?", Options: options}, {Question: "Some?", Options: options, Several: true, Words: true},
	}}}, noon)
}

func TestNED_02_WhatAModelAsksIsAnsweredByAChoiceForEachQuestion(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, tt := range []struct {
		answers [][]string
		taken   bool
	}{
		{[][]string{{"Red"}, {"Blue"}}, true},
		{[][]string{{"Blue"}, {"Red", "Blue", "both"}}, true},
		{[][]string{{"Red"}, {long(4_000)}}, true},
		{[][]string{{"Red"}, {long(4_001)}}, false},
		{nil, false},
		{[][]string{{"Red"}}, false},
		{[][]string{{"Red"}, {"Red"}, {"Red"}}, false},
		{[][]string{{}, {"Red"}}, false},
		{[][]string{{"Red", "Blue"}, {"Red"}}, false},
		{[][]string{{"Green"}, {"Red"}}, false},
		{[][]string{{"red"}, {"Red"}}, false},
		{[][]string{{"Red"}, {" "}}, false},
		{[][]string{{"Red"}, {"Red", "Red"}}, false},
		{[][]string{{"Red"}, {"two", "words"}}, false},
	} {
		p := asksItself()
		err := p.Choose("owner", tt.answers, noon)
		if code := bridge.CodeOf(err); tt.taken != (err == nil) || !tt.taken && code != bridge.Invalid && code != bridge.TooLarge {
			t.Errorf("%.20q: %v", tt.answers, err)
		}
		if taken := p.State == job.ApprovalAnswered && p.Decision == job.Allow && len(p.Answers) == 2; taken != tt.taken || len(p.Choices) != 2 {
			t.Errorf("%q: it is %+v", tt.answers, p.Approval)
		}
		if again := p.Choose("owner", tt.answers, noon); tt.taken && bridge.CodeOf(again) != bridge.Conflict {
			t.Errorf("a second answer gives %v", again)
		}
	}
}

// Claude ignores that its question is merely allowed: that is no answer.
func TestNED_02_AQuestionOfAModelsIsNotMerelyAllowed(t *testing.T) {
	p := asksItself()
	if err := p.Answer("owner", job.Allow, "", noon); bridge.CodeOf(err) != bridge.Invalid || p.State != job.ApprovalAsked {
		t.Errorf("allowed: %v, it is %s", err, p.State)
	}
	if err := p.Answer("owner", job.Deny, "later", noon); err != nil || p.Decision != job.Deny {
		t.Errorf("denied: %v", err)
	}
	other := asked()
	if err := other.Choose("owner", [][]string{{"x"}}, noon); bridge.CodeOf(err) != bridge.Invalid || other.State != job.ApprovalAsked {
		t.Errorf("a command is answered by a choice: %v", err)
	}
	told := asksItself()
	told.OnlyTold = "not here"
	if err := told.Choose("owner", [][]string{{"Red"}, {"Red"}}, noon); bridge.CodeOf(err) != bridge.Conflict || told.State != job.ApprovalAsked {
		t.Errorf("what is only told is answered: %v", err)
	}
}

func TestNED_02_WhatIsPickedByACommandIsAnAnswer(t *testing.T) {
	choice := []bridge.Choice{{Question: "Which port?", Options: []bridge.ChoiceOption{{Label: "4777"}, {Label: "4778"}}}}
	second, third := []job.Pick{{Option: "2"}}, []job.Pick{{Option: "3"}}
	for _, tt := range []struct {
		name   string
		change func(*prompt.Prompt)
		picks  []job.Pick
		want   [][]string
		code   bridge.Code
	}{
		{"an option", func(*prompt.Prompt) {}, second, [][]string{{"4778"}}, ""},
		{"no such option", func(*prompt.Prompt) {}, third, nil, bridge.Invalid},
		{"one that only its terminal can answer", func(p *prompt.Prompt) { p.OnlyTold = "it is shown there" }, third, nil, bridge.Conflict},
		{"one that was answered at its terminal", func(p *prompt.Prompt) { p.See(prompt.Allowed) }, third, nil, bridge.Conflict},
	} {
		p := asked()
		p.Choices = choice
		tt.change(&p)
		before := p
		err := p.Pick("page", tt.picks, noon)
		if bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
		}
		if len(p.Answers) != len(tt.want) || err == nil && !slices.Equal(p.Answers[0], tt.want[0]) {
			t.Errorf("%s: the answers are %q", tt.name, p.Answers)
		}
		if err != nil && p.State != before.State {
			t.Errorf("%s: it is %s, and was %s", tt.name, p.State, before.State)
		}
	}
}

func TestNED_02_HowAPromptEndedIsSaidInWords(t *testing.T) {
	said := map[string]bool{}
	for _, how := range []prompt.Elsewhere{prompt.WasAllowed, prompt.WasRefused, prompt.WasAnswered, prompt.WasStopped, prompt.WasGone, prompt.WasUnheld, prompt.WasUnclear, ""} {
		words := prompt.Words(how)
		if words == "" || said[words] {
			t.Errorf("%q says %q, as another does", how, words)
		}
		said[words] = true
	}
}
