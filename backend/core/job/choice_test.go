package job_test

import (
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

func TestNED_02_WhatIsPickedAtATerminalIsAnAnswerForEachQuestion(t *testing.T) {
	options := func(labels ...string) (list []bridge.ChoiceOption) {
		for _, label := range labels {
			list = append(list, bridge.ChoiceOption{Label: label})
		}
		return list
	}
	choice := bridge.Choice{Question: "One?", Options: options("Red", "Blue")}
	some := bridge.Choice{Question: "Some?", Options: options("Red", "Blue", "a, b"), Several: true, Words: true}
	free := bridge.Choice{Question: "Why?", Words: true}
	numbers := bridge.Choice{Question: "How many?", Options: options("2", "1", "7", "4")}
	option := func(s string) job.Pick { return job.Pick{Option: s} }
	words := func(s string) job.Pick { return job.Pick{Words: s} }
	for _, tt := range []struct {
		name    string
		choices []bridge.Choice
		picks   []job.Pick
		want    [][]string
		refused string // all of what the error says, else ""
	}{
		{"a number", []bridge.Choice{choice}, []job.Pick{option("2")}, [][]string{{"Blue"}}, ""},
		{"a name", []bridge.Choice{choice}, []job.Pick{option("Red")}, [][]string{{"Red"}}, ""},
		{"a name as words", []bridge.Choice{choice}, []job.Pick{words("Red")}, [][]string{{"Red"}}, ""},
		{"other words where none are taken", []bridge.Choice{choice}, []job.Pick{words("Green")}, nil, `question 1 offers no answer "Green": One? (1 Red, 2 Blue)`},
		{"number 0", []bridge.Choice{choice}, []job.Pick{option("0")}, nil, `question 1 offers no answer "0": One? (1 Red, 2 Blue)`},
		{"a number too high", []bridge.Choice{choice}, []job.Pick{option("3")}, nil, `question 1 offers no answer "3": One? (1 Red, 2 Blue)`},
		{"another case", []bridge.Choice{choice}, []job.Pick{option("red")}, nil, `question 1 offers no answer "red": One? (1 Red, 2 Blue)`},
		{"two of one", []bridge.Choice{choice}, []job.Pick{option("1"), option("2")}, nil, "question 1: choose one answer, not 2: One? (1 Red, 2 Blue)"},
		{"numbers with a comma of one", []bridge.Choice{choice}, []job.Pick{option("1,2")}, nil, `question 1 offers no answer "1,2": One? (1 Red, 2 Blue)`},
		{"several numbers", []bridge.Choice{some}, []job.Pick{option("1, 2")}, [][]string{{"Red", "Blue"}}, ""},
		{"several flags and words", []bridge.Choice{some}, []job.Pick{option("1"), option("Blue"), words("and")}, [][]string{{"Red", "Blue", "and"}}, ""},
		{"a name with a comma", []bridge.Choice{some}, []job.Pick{option("a, b")}, [][]string{{"a, b"}}, ""},
		{"one of several is none", []bridge.Choice{some}, []job.Pick{option("1,9")}, nil, `question 1 offers no answer "9": Some? (one or more of 1 Red, 2 Blue, 3 a, b, or words of your own)`},
		{"the same twice", []bridge.Choice{some}, []job.Pick{option("1,Red")}, nil, `question 1: "Red" is chosen twice`},
		{"words alone", []bridge.Choice{free}, []job.Pick{words("so")}, [][]string{{"so"}}, ""},
		{"an option where none is offered", []bridge.Choice{free}, []job.Pick{option("1")}, nil, `question 1 offers no answer "1": Why? (words of your own)`},
		{"a number that names another", []bridge.Choice{numbers}, []job.Pick{option("1")}, nil, `question 1: "1" is the number of one answer and the name of another: give its name by --answer: How many? (1 2, 2 1, 3 7, 4 4)`},
		{"its name as words", []bridge.Choice{numbers}, []job.Pick{words("1")}, [][]string{{"1"}}, ""},
		{"a number that is only a name", []bridge.Choice{numbers}, []job.Pick{option("7")}, [][]string{{"7"}}, ""},
		{"a number that names the same", []bridge.Choice{numbers}, []job.Pick{option("4")}, [][]string{{"4"}}, ""},
		{"one for each", []bridge.Choice{choice, some, free}, []job.Pick{option("2"), option("1,3"), words("so")}, [][]string{{"Blue"}, {"Red", "a, b"}, {"so"}}, ""},
		{"too few", []bridge.Choice{choice, free}, []job.Pick{option("2")}, nil, "it asks 2 questions, and these are 1 answer: give one for each, in their order: One? (1 Red, 2 Blue); Why? (words of your own)"},
		{"too many", []bridge.Choice{choice, free}, []job.Pick{option("2"), words("a"), words("b")}, nil, "it asks 2 questions, and these are 3 answers: give one for each, in their order: One? (1 Red, 2 Blue); Why? (words of your own)"},
		{"nothing", []bridge.Choice{choice}, nil, nil, "question 1: choose an answer: One? (1 Red, 2 Blue)"},
		{"no question", nil, []job.Pick{option("1")}, nil, "nothing can be chosen here: allow or deny it"},
	} {
		got, err := job.Picked(tt.choices, tt.picks)
		if tt.refused != "" {
			if bridge.CodeOf(err) != bridge.Invalid || err.Error() != tt.refused {
				t.Errorf("%s: %v\nwant %s", tt.name, err, tt.refused)
			}
			continue
		}
		if err != nil || !slices.EqualFunc(got, tt.want, slices.Equal) {
			t.Errorf("%s: %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestNED_02_ATerminalShowsAllOfWhatAModelAsksWithNumbers(t *testing.T) {
	choices := []bridge.Choice{
		{Question: "Which?", Header: "Colour", Options: []bridge.ChoiceOption{{Label: "Red", Description: "warm", Preview: "r\nR"}, {Label: "Blue"}}, Words: true},
		{Question: "Why?", Options: []bridge.ChoiceOption{}, Several: true, Words: true},
	}
	const want = "Colour: Which?\n  1  Red: warm\n       r\n       R\n  2  Blue\n  or in your own words\nWhy? (one or more)\n  in your own words"
	if got := strings.Join(job.ChoiceText(choices), "\n"); got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
	if got, want := job.ApproveText("p-1", choices), "bridge approve p-1 --option N --answer WORDS"; got != want {
		t.Errorf("the command is %q, want %q", got, want)
	}
	if got, want := job.ApproveText("p-1", nil), "bridge approve p-1"; got != want {
		t.Errorf("the command is %q, want %q", got, want)
	}
}
