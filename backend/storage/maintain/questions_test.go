package maintain

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/question"
	"bridge/backend/owner/questions"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/inventory"
)

// What moves on while a snapshot is taken is in it twice, and never not at all.
func TestSTO_04_WhatMovesOnIsCopiedBeforeWhereItGoes(t *testing.T) {
	c := newHome(t)
	for _, path := range []string{"read-journal/0b5f.json", "pending-job-writes/01.json", "compat.db", "questions.db", "archive.db", "archive/old.json", "jobs/01/result.json"} {
		write(t, c.Home.Dir(), path, "{}")
	}
	order, err := inventory.Managed(t.Context(), c.Home.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, moves := range []struct{ from, to string }{
		{"read-journal/0b5f.json", "bridge.db"},
		{"compat.db", "bridge.db"},
		{"questions.db", "bridge.db"}, // the owner's answers and what he pins with them
		{"jobs/01/result.json", "bridge.db"},
		{"bridge.db", "archive.db"},
		{"archive.db", "archive/old.json"},
	} {
		from, to := slices.Index(order, moves.from), slices.Index(order, moves.to)
		if from < 0 || to < 0 || from > to {
			t.Errorf("%s is copied as number %d, %s as number %d", moves.from, from, moves.to, to)
		}
	}
}

// carrier is told where the owner's answers go.
type carrier struct {
	questions.Broker
	stored []string
}

func (c *carrier) Chat(_ context.Context, r chat.Request) (chat.Outcome, error) {
	c.stored = append(c.stored, r.MessageID+" "+r.Body)
	return chat.Outcome{Transport: chat.Native}, nil
}

func (*carrier) Deliver(context.Context, bridge.Address, string, api.SendArgs) error { return nil }

func (*carrier) IsStored(context.Context, string) (bool, error) { return false, nil }

func (*carrier) Changed() {}

const askedBefore = `CREATE TABLE questions (id TEXT PRIMARY KEY, project TEXT NOT NULL, dedupe_key TEXT NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL);
	CREATE UNIQUE INDEX questions_open_key ON questions (dedupe_key) WHERE status = 'open';
	PRAGMA user_version = 1;
	INSERT INTO questions VALUES
	('q-open', '/src/app', 'k1', 'open', '{"title": "Which port?", "by": {"id": "p-1", "name": "api"}, "foreign": "stays"}'),
	('q-on-its-way', '/src/app', 'k2', 'answered', '{"title": "Which name?", "by": {"id": "p-1", "name": "api"}, "answer": {"text": "crew"}, "message": "question-answer-q-on-its-way"}'),
	('q-carried', '/src/app', 'k3', 'answered', '{"title": "Which day?", "by": {"id": "p-1", "name": "api"}, "answer": {"text": "Monday"}, "message": "question-answer-q-carried", "carried": true}')`

// A restore brings what was asked back, and an answer that had not reached its session
// then reaches it now, alone.
func TestSTO_08_NED_03_QuestionsComeBackOnARestore(t *testing.T) {
	c := newHome(t)
	makeDatabase(t, c, "questions.db", askedBefore)
	mustBackup(t, c)
	makeDatabase(t, c, "questions.db", "DELETE FROM questions")
	if _, err := c.Restores().Restore(t.Context(), newestSnapshot(t, c)); err != nil {
		t.Fatal(err)
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	to := &carrier{}
	q, err := questions.Open(t.Context(), questions.Options{
		Path: inventory.JoinHome(c.Home.Dir(), "questions.db"), Broker: to, Now: c.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.Resume(t.Context())
	states := map[string]question.State{}
	for _, item := range q.Questions() {
		states[item.ID] = item.State
		if item.State == question.Answered && !item.Carried {
			t.Errorf("the answer to %s still waits", item.ID)
		}
	}
	want := map[string]question.State{"q-open": question.Open, "q-on-its-way": question.Answered, "q-carried": question.Answered}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Error(diff)
	}
	if len(to.stored) != 1 || !strings.HasPrefix(to.stored[0], "question-answer-q-on-its-way ") || !strings.HasSuffix(to.stored[0], "crew") {
		t.Errorf("carried %q", to.stored)
	}
}

// A merge brings messages back: what was asked of the owner stays as it is.
func TestSTO_16_AMergeLeavesQuestionsAsTheyAre(t *testing.T) {
	c := newHome(t)
	makeDatabase(t, c, "questions.db", askedBefore)
	made, err := c.Snapshots().BackupMessages(t.Context(), func(ctx context.Context) error { return ctx.Err() })
	if err != nil {
		t.Fatal(err)
	}
	makeDatabase(t, c, "questions.db", "DELETE FROM questions WHERE id = 'q-carried'")
	before := managedBytes(t, c)["questions.db"]
	if _, err := c.Restores().Merge(t.Context(), made.Path); err != nil {
		t.Fatal(err)
	}
	if before == "" || managedBytes(t, c)["questions.db"] != before {
		t.Error("questions.db changed")
	}
}
