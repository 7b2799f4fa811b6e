package job

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

func TestJOB_18_CommentsAreOneMessage(t *testing.T) {
	for _, bad := range [][]Comment{
		nil,
		{{Path: "a.txt", Line: -1, Body: "x"}},
		{{Path: "a.txt", Line: 1, Side: "left", Body: "x"}},
		{{Path: "", Line: 1, Body: "x"}},
		{{Path: "a.txt\nb", Line: 1, Body: "x"}},
		{{Path: "../a.txt", Line: 1, Body: "x"}},
		{{Path: "/etc/passwd", Line: 1, Body: "x"}},
		{{Path: "src/../../a.txt", Line: 1, Body: "x"}},
		{{Path: ".", Line: 0, Body: "x"}},
		{{Path: "a.txt", Line: 1, Body: " "}},
	} {
		if _, err := CommentsText(bad); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	at := func(n int) []Comment {
		many := make([]Comment, n)
		for i := range many {
			many[i] = Comment{Path: "a.txt", Line: 1, Body: "x"}
		}
		return many
	}
	if _, err := CommentsText(at(MaxComments)); err != nil {
		t.Errorf("%d comments: %v", MaxComments, err)
	}
	for _, large := range [][]Comment{at(MaxComments + 1), {{Path: "a.txt", Line: 1, Body: strings.Repeat("x", MaxCommentChars+1)}}} {
		if _, err := CommentsText(large); bridge.CodeOf(err) != bridge.TooLarge {
			t.Errorf("too much: %v", err)
		}
	}
	text, err := CommentsText([]Comment{
		{Path: "a.txt", Line: 2, Side: "new", Body: "Write it out."}, {Path: "a.txt", Line: 3, Side: "old", Body: "Why?"}, {Path: "new.txt", Body: "Not needed."},
	})
	want := "Your user has looked at your changes and has 3 comments. Take up each of them.\n\n" +
		"a.txt, line 2:\nWrite it out.\n\na.txt, line 3 as it was before your changes:\nWhy?\n\nnew.txt:\nNot needed."
	if err != nil || text != want {
		t.Errorf("%v: %s", err, text)
	}
}

func TestJOB_08_WhatTheOwnerDoesWithTheWorkDecidesWhetherItGoesOn(t *testing.T) {
	at := time.Now()
	for _, tt := range []struct {
		landing *Landing
		goesOn  bool
	}{
		{nil, true},
		{&Landing{Finish: Finish{Action: "squash", State: LandingDone}}, true},
		{&Landing{Finish: Finish{Action: "squash", State: LandingBegun}}, false},
		{&Landing{Finish: Finish{Action: "discard", State: LandingDone}}, false},
		{&Landing{Finish: Finish{Action: "discard", State: LandingFailed}}, true},
	} {
		job := Job{Name: "codex-job-00000001", Agent: bridge.Codex, State: Finished, Run: 1, Landing: tt.landing}
		_, err := NewRegistry(Limits{}, []Job{job}).Message(job.Name, "more", Settings{}, at)
		if goesOn := err == nil; goesOn != tt.goesOn || err != nil && bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("after %+v: %v", tt.landing, err)
		}
	}
}

func TestJOB_09_AJobWhoseWorktreeIsThereStaysOutOfTheArchive(t *testing.T) {
	worktree := Worktree{Path: "/w", Base: "b"}
	gone, expired := worktree, worktree
	gone.ReclaimedAt = 5
	expired.ReclaimedAt, expired.ExpiredAt = 5, 6
	dropped := &Landing{Finish: Finish{Action: "discard", State: LandingDone}}
	for _, tt := range []struct {
		worktree *Worktree
		landing  *Landing
		moves    bool
	}{
		{nil, nil, true}, {&Worktree{Path: "/w"}, nil, true}, {&worktree, nil, false}, {&gone, nil, true}, {&gone, dropped, false}, {&expired, dropped, true},
	} {
		jobs := []Job{{Name: "codex-job-ffffffff", State: Finished, Status: "done", FinishedAt: 1, ResultSent: true, Worktree: tt.worktree, Landing: tt.landing}}
		for i := range KeepFinished {
			jobs = append(jobs, Job{Name: Name(bridge.Codex, false, [4]byte{byte(i)}), State: Finished, FinishedAt: Millis(i + 2), ResultSent: true})
		}
		names := NewRegistry(Limits{}, jobs).Archivable(time.Time{})
		if moves := len(names) == 1 && names[0] == "codex-job-ffffffff"; moves != tt.moves {
			t.Errorf("with %+v, %+v: %v", tt.worktree, tt.landing, names)
		}
	}
}
