package question_test

import (
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
)

func options(labels ...string) (list []question.Option) {
	for _, label := range labels {
		list = append(list, question.Option{Label: label, Consequence: "so " + label})
	}
	return list
}

func TestNED_03_WhatMayBeAsked(t *testing.T) {
	long := func(n int) string { return strings.Repeat("ä", n) }
	for name, tt := range map[string]struct {
		args question.Args
		code bridge.Code // "" for none
	}{
		"a title alone":               {question.Args{Title: "Which port?"}, ""},
		"two options":                 {question.Args{Title: "Which port?", Options: options("a", "b")}, ""},
		"four options":                {question.Args{Title: "Which port?", Options: options("a", "b", "c", "d")}, ""},
		"the longest of all":          {question.Args{Title: long(200), Context: long(4000), Topic: long(160), Options: []question.Option{{Label: long(200), Consequence: long(1000)}, {Label: "b", Consequence: "x"}}}, ""},
		"no title":                    {question.Args{}, bridge.Invalid},
		"a title of white space":      {question.Args{Title: " \t"}, bridge.Invalid},
		"a title of two lines":        {question.Args{Title: "a\nb"}, bridge.Invalid},
		"a title with an escape code": {question.Args{Title: "a\x1b[2Jb"}, bridge.Invalid},
		"a title of 201 characters":   {question.Args{Title: long(201)}, bridge.TooLarge},
		"a context of 4,001":          {question.Args{Title: "t", Context: long(4001)}, bridge.TooLarge},
		"a topic of 161":              {question.Args{Title: "t", Topic: long(161)}, bridge.TooLarge},
		"bytes that are no text":      {question.Args{Title: "t", Context: "a\xff"}, bridge.Invalid},
		"one option":                  {question.Args{Title: "t", Options: options("a")}, bridge.Invalid},
		"five options":                {question.Args{Title: "t", Options: options("a", "b", "c", "d", "e")}, bridge.Invalid},
		"two of one name":             {question.Args{Title: "t", Options: options("a", "a")}, bridge.Invalid},
		"an option without a label":   {question.Args{Title: "t", Options: options("a", "")}, bridge.Invalid},
		"one without a consequence":   {question.Args{Title: "t", Options: []question.Option{{Label: "a"}, {Label: "b", Consequence: "x"}}}, bridge.Invalid},
		"one with an id of its own":   {question.Args{Title: "t", Options: []question.Option{{ID: "7", Label: "a", Consequence: "x"}, {Label: "b", Consequence: "x"}}}, bridge.Invalid},
		"a label of 201":              {question.Args{Title: "t", Options: options(long(201), "b")}, bridge.TooLarge},
		"a consequence of 1,001":      {question.Args{Title: "t", Options: []question.Option{{Label: "a", Consequence: long(1001)}, {Label: "b", Consequence: "x"}}}, bridge.TooLarge},
	} {
		err := tt.args.Check()
		if bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
		if err == nil && len(tt.args.Options) > 1 && (tt.args.Options[0].ID != "1" || tt.args.Options[1].ID != "2") {
			t.Errorf("%s: the options are %+v", name, tt.args.Options)
		}
	}
}

func TestNED_03_FiveAreOpenAtMostAndTheSameTopicReplaces(t *testing.T) {
	address := bridge.Address{ID: "p-1", Name: "claude-app"}
	about := func(id, project, topic, asker string) question.Question {
		return question.Question{ID: id, Project: project, Topic: topic, By: bridge.Address{ID: asker}, State: question.Open}
	}
	five := []question.Question{about("1", "/a", "", "p-1"), about("2", "/a", "", "p-1"), about("3", "/a", "Port", "p-1"), about("4", "/a", "", "p-1"), about("5", "/a", "", "p-1")}
	for _, tt := range []struct {
		name     string
		asks     question.Question
		open     []question.Question
		replaces string
		code     bridge.Code
	}{
		{"the first", question.Question{ID: "x", By: address}, nil, "", ""},
		{"the fifth", question.Question{ID: "x", By: address}, five[:4], "", ""},
		{"the sixth", question.Question{ID: "x", By: address}, five, "", bridge.Conflict},
		{"one that replaces, with five open", question.Question{ID: "x", Project: "/a", Topic: " port ", By: address}, five, "3", ""},
		{"the same topic of another project", question.Question{ID: "x", Project: "/b", Topic: "port", By: address}, five[:4], "", ""},
		{"no topic is no topic", question.Question{ID: "x", Project: "/a", By: address}, five[:4], "", ""},
	} {
		replaces, err := question.Ask(tt.asks, tt.open)
		if replaces != tt.replaces || bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: replaces %q, %v", tt.name, replaces, err)
		}
	}
	if about("1", "/a", "port", "p-1").Key() == about("1", "/a", "port", "p-2").Key() {
		t.Error("a question replaces another session's")
	}
}

func TestNED_03_TheFirstAnswerWins(t *testing.T) {
	args := question.Args{Title: "Which port?", Options: options("4778", "a free one")}
	if err := args.Check(); err != nil {
		t.Fatal(err)
	}
	open := question.Question{ID: "q-1", Title: args.Title, Options: args.Options, State: question.Open}
	words := question.Question{ID: "q-2", Title: "Which port?", State: question.Open}
	over := func(state question.State) question.Question {
		return question.Question{State: state, Answer: &question.Answer{Text: "no"}}
	}
	for _, tt := range []struct {
		name   string
		of     question.Question
		answer question.Answer
		words  string
		code   bridge.Code
	}{
		{"an option", open, question.Answer{Option: "2"}, "a free one", ""},
		{"an option and a remark", open, question.Answer{Option: "1", Text: "for now"}, "4778. for now", ""},
		{"words beside the options", open, question.Answer{Text: "neither"}, "neither", ""},
		{"words", words, question.Answer{Text: "4778"}, "4778", ""},
		{"a label that somebody made up", open, question.Answer{Option: "1", Label: "rm -rf"}, "4778", ""},
		{"no such option", open, question.Answer{Option: "3"}, "", bridge.Invalid},
		{"option 0", open, question.Answer{Option: "0", Text: "x"}, "", bridge.Invalid},
		{"an option of a question without any", words, question.Answer{Option: "1"}, "", bridge.Invalid},
		{"nothing", open, question.Answer{}, "", bridge.Invalid},
		{"white space", words, question.Answer{Text: " \n"}, "", bridge.Invalid},
		{"8,000 characters", words, question.Answer{Text: strings.Repeat("ä", 8000)}, strings.Repeat("ä", 8000), ""},
		{"one more", words, question.Answer{Text: strings.Repeat("ä", 8001)}, "", bridge.TooLarge},
		{"one that was answered", over(question.Answered), question.Answer{Text: "yes"}, "no", bridge.Conflict},
		{"one that was taken back", over(question.Cancelled), question.Answer{Text: "yes"}, "no", bridge.Conflict},
		{"one that was asked anew", over(question.Superseded), question.Answer{Text: "yes"}, "no", bridge.Conflict},
	} {
		before := tt.of.State
		err := tt.of.Decide(tt.answer, 7)
		if bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && tt.of.State != before || err == nil && (tt.of.State != question.Answered || tt.of.EndedAt != 7) {
			t.Errorf("%s: it is %s", tt.name, tt.of.State)
		}
		if tt.of.Answer != nil && tt.of.Answer.Words() != tt.words {
			t.Errorf("%s: it says %q", tt.name, tt.of.Answer.Words())
		}
	}
}

func TestNED_03_ARefusedOptionIsNamedAsPeopleCount(t *testing.T) {
	for _, tt := range []struct {
		second question.Option
		names  string
	}{
		{question.Option{ID: "7", Label: "b", Consequence: "x"}, "option 2:"},
		{question.Option{Label: "b\nc", Consequence: "x"}, "the label of option 2"},
		{question.Option{Label: "b", Consequence: "a\xff"}, "the consequence of option 2"},
	} {
		asks := question.Args{Title: "t", Options: append(options("a"), tt.second)}
		if err := asks.Check(); err == nil || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%+v: %v, want %q", tt.second, err, tt.names)
		}
	}
}

func TestNED_03_AQuestionEndsOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   question.Question
		says string // "" where it ends
	}{
		{"open", question.Question{State: question.Open}, ""},
		{"answered", question.Question{State: question.Answered, EndedAt: 1, Answer: &question.Answer{Text: "no"}}, "it was answered already: no"},
		{"taken back", question.Question{State: question.Cancelled, EndedAt: 1}, "its asker has taken it back: this did nothing"},
		{"asked anew", question.Question{State: question.Superseded, EndedAt: 1}, "its asker has asked anew: this did nothing"},
	} {
		before := tt.of.State
		err := tt.of.End(question.Cancelled, 9)
		switch {
		case tt.says == "" && (err != nil || tt.of.State != question.Cancelled || tt.of.EndedAt != 9):
			t.Errorf("%s: %v, %+v", tt.name, err, tt.of)
		case tt.says != "" && (bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), tt.says) || tt.of.State != before || tt.of.EndedAt != 1):
			t.Errorf("%s: %v, %+v", tt.name, err, tt.of)
		}
	}
	if thread, message := question.Conversation("q-1"), question.MessageID("q-1"); thread != "question-q-1" || message != "question-answer-q-1" {
		t.Errorf("the answer is %q in %q", message, thread)
	}
}
