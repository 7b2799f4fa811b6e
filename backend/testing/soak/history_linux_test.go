package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
	"bridge/backend/testing/soak/history"
)

// chains is how many topics have decisions that replace each other.
const chains = 4

func chainTopic(n int) string { return fmt.Sprintf("chain-%d", n) }

// shown notes in the history what came into the session's context. whole says that the
// answer had room for more.
func (a *actor) shown(call history.Call, life int, text string, whole bool) {
	call.End(history.Inbox{To: a.name, Conn: a.conn(life), Shown: tokensOf(text), Whole: whole, Implied: true})
}

// replacesDecision decides on a topic on which others decide, too.
func (a *actor) replacesDecision(n int64) {
	a.decide(chainTopic(rand.IntN(chains)), fmt.Sprintf("cha-%s-%d", a.name, n), false)
}

// decide records a decision for all sessions and reports whether it was answered. due says
// that each session has to be told of it: nothing replaces it.
func (a *actor) decide(topic, token string, due bool) bool {
	s, _ := a.server()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	var answer struct{ Decision decision.Revision }
	call := a.w.history.Begin(a.name)
	err := s.call(ctx, "decide", map[string]any{"topic": topic, "text": decisionText(token), "scope": "all"}, &answer)
	call.Finish(decideOf(topic, decisionText(token), answer.Decision), err == nil)
	for _, name := range a.w.names() {
		call.End(history.Notice{To: name, ID: token, Due: due && err == nil})
	}
	return err == nil
}

func decisionText(token string) string { return "settled [" + token + "]" }

func decideOf(topic, text string, revision decision.Revision) history.Decide {
	done := history.Decide{Topic: topic, Text: text, ID: revision.ID}
	if revision.Supersedes != nil {
		done.Supersedes = *revision.Supersedes
	}
	return done
}

// names are those of all sessions of the world.
func (w *world) names() (names []string) {
	for _, a := range w.actors {
		names = append(names, a.name)
	}
	for _, h := range w.holders {
		if !slices.Contains(names, h.session) {
			names = append(names, h.session)
		}
	}
	return names
}

// readsDecisions looks again and again at what is in force on a topic.
func (w *world) readsDecisions() {
	w.every(100*time.Millisecond, func() {
		a, topic := w.actors[rand.IntN(len(w.actors))], chainTopic(rand.IntN(chains))
		call := w.history.Begin(a.name)
		if found, err := a.decisionsOn(topic, false); err == nil {
			ids := []string{}
			for _, revision := range found {
				ids = append(ids, revision.ID)
			}
			call.End(history.Current{Topic: topic, IDs: ids})
		}
	})
}

// decisionsOn returns the current revisions of a topic, or with all its whole chain, the
// newest first.
func (a *actor) decisionsOn(topic string, all bool) ([]decision.Revision, error) {
	s, _ := a.server()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	var found []decision.Revision
	err := s.call(ctx, "decisions", map[string]any{"query": topic, "scope": "all", "history": all}, &found)
	return slices.DeleteFunc(found, func(r decision.Revision) bool { return r.Topic != topic || !all && !r.Current }), err
}

// acceptHistory checks what the sessions saw of messages, decisions and questions. All
// mail is read by now.
func (w *world) acceptHistory() {
	w.Helper()
	for n := range chains {
		topic := chainTopic(n)
		call := w.history.Begin("test")
		found, err := w.actors[0].decisionsOn(topic, true)
		if err != nil {
			w.Errorf("the decisions on %s: %v", topic, err)
			continue
		}
		chain := history.Revisions{Topic: topic}
		for _, revision := range slices.Backward(found) {
			chain.List = append(chain.List, revisionOf(revision))
		}
		call.End(chain)
	}
	w.history.Begin("test").End(history.End{})
	w.history.Accept(w)
}

func revisionOf(r decision.Revision) history.Revision {
	revision := history.Revision{ID: r.ID, Text: r.Text}
	if r.Supersedes != nil {
		revision.Supersedes = *r.Supersedes
	}
	return revision
}

// resultPart and messagePart name what is told of a run of a job in the history.
const (
	resultPart  = "result"
	messagePart = "message"
)

// resultOf returns the job and the run whose result a message is.
func resultOf(id string) (name string, run int, isResult bool) {
	at := strings.LastIndex(id, "-")
	if at < 0 {
		return "", 0, false
	}
	run, err := strconv.Atoi(id[at+1:])
	name = strings.TrimPrefix(id[:at], "result-")
	return name, run, err == nil && id == runs.ResultID(name, run)
}

// notesResults notes what a supervisor was shown of its jobs.
func (l *lane) notesResults(call history.Call, life int, messages []shown) {
	look := history.Inbox{To: l.boss.name, Conn: l.boss.conn(life), Whole: len(messages) < inboxMost, Implied: true}
	for _, m := range messages {
		if name, run, isResult := resultOf(m.ID); isResult {
			look.Shown = append(look.Shown, m.ID)
			l.begun.Cut(history.Send{To: l.boss.name, ID: m.ID})
			call.End(history.Result{Job: name, Run: run, Part: messagePart, Text: m.Body})
		}
	}
	call.End(look)
}

// looksAtResult asks what came of a job, on a connection of its supervisor's session. A
// broker that is being replaced is not waited for.
func (w *world) looksAtResult(boss *actor, name, part string) {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	client, err := w.dialSession(ctx)
	if err != nil {
		return
	}
	defer client.Close()
	server, _ := boss.server()
	_, err = client.Register(ctx, api.Register{
		Kind: boss.kind, Name: boss.name, Cwd: w.dir, AgentPID: os.Getpid(), SessionID: "host-" + boss.name,
		Process: proc.Name(server.cmd.Process.Pid).Name, // no other process of the session than its server
	})
	if err != nil {
		return
	}
	call := w.history.Begin(boss.name)
	found, err := client.JobResult(ctx, api.JobArgs{Job: name})
	switch _, run, isResult := resultOf(found.Message); {
	case bridge.CodeOf(err) == bridge.Unavailable:
	case err != nil:
		w.Errorf("the result of %s: %v", name, err)
	case isResult && found.Ended:
		call.End(history.Result{Job: name, Run: run, Part: part, Text: found.Result + found.Error})
	}
}

// dialSession connects as a session's server does.
func (w *world) dialSession(ctx context.Context) (*ipc.Client, error) {
	token, err := w.home.ExistingToken()
	if err != nil {
		return nil, err
	}
	return ipc.Dial(ctx, ipc.Target{Socket: w.home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "soak"})
}
