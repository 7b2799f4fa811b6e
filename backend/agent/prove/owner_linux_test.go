package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
)

// pageOf serves the states one after the other: each event announces the next one.
func pageOf(t *testing.T, states ...string) *page {
	t.Helper()
	next := make(chan struct{}, 1)
	at := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /launch", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		for {
			select {
			case <-next:
				fmt.Fprint(w, "event: changed\ndata: {}\n\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, states[at])
		if at < len(states)-1 {
			at++
			next <- struct{}{}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	p, err := openPage(t.Context(), server.URL+"/launch?key=k")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCAN_01_ThePageIsReadAgainAtEachEvent(t *testing.T) {
	p := pageOf(t, `{}`, `{"approvals":[{"id":"a","detail":"touch x","state":"asked"}]}`, `{"approvals":[{"id":"a","detail":"touch x","state":"applied"}]}`)
	now, err := p.await(t.Context(), func(s shown) bool {
		approval, ok := s.prompt("touch x")
		return ok && approval.State == "applied"
	})
	if approval, ok := now.prompt("touch x"); err != nil || !ok || approval.ID != "a" {
		t.Errorf("%+v, %v", now, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	now, err = p.await(ctx, func(shown) bool { return false })
	if len(now.Approvals) != 1 || err == nil {
		t.Errorf("what never comes: %+v, %v", now, err)
	}
}

func TestCAN_01_WhatThePageRefusesIsSaid(t *testing.T) {
	if _, err := openPage(t.Context(), "no link"); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("no link: %v", err)
	}
	err := pageOf(t, `{}`).Ask(t.Context(), http.MethodPost, "/api/approvals/a", nil, &approval{})
	if err == nil || !strings.Contains(err.Error(), "POST /api/approvals/a is answered with 404") {
		t.Errorf("an unknown address: %v", err)
	}
}

func TestCAN_01_WhatThePageShowsIsFound(t *testing.T) {
	var s shown
	err := json.Unmarshal([]byte(`{"peers":[{"name":"a","children":[{"id":"1"}]},{"name":"b"}],"messages":[{"id":"result-x-1","body":"x was cancelled"}],
		"approvals":[{"id":"old","detail":"touch x"},{"id":"new","detail":"touch x"}]}`), &s)
	if err != nil {
		t.Fatal(err)
	}
	newest, ok := s.prompt("touch x")
	if _, other := s.prompt("touch y"); !ok || other || newest.ID != "new" {
		t.Errorf("prompts: %+v, %v, %v", newest, ok, other)
	}
	if !s.hasChild("a", "1") || s.hasChild("b", "1") || s.hasChild("a", "2") {
		t.Error("the sub-agent 1 is that of a alone")
	}
	if !s.holds(cancelled("x")) || s.holds(jobResult) || !s.hasMessage("result-x-1") || s.hasMessage("result-x-2") {
		t.Errorf("messages: %+v", s.Messages)
	}
}

func TestCAN_01_AStepOfAJobEndsWithTheJob(t *testing.T) {
	w := &walk{scene: &scene{Run: Run{StepTimeout: time.Minute}}}
	w.page = pageOf(t, `{}`, `{"messages":[{"id":"result-x-1"}]}`)
	ended, cancel := w.whileRuns(t.Context(), "x", 1)
	defer cancel()
	<-ended.Done()
	if got := w.waited(ended); got != " before it ended" {
		t.Errorf("it waited%s", got)
	}
	w.StepTimeout = 50 * time.Millisecond
	runs, cancel := w.whileRuns(t.Context(), "x", 2)
	defer cancel()
	<-runs.Done()
	if got := w.waited(runs); got != " within 50ms" {
		t.Errorf("it waited%s", got)
	}
}

func TestCAN_01_AnOlderClaudeGetsTheWordsAsMail(t *testing.T) {
	for version, asPrompt := range map[string]bool{"": true, "2.1.286": false, "2.1.287": true, "2.2.0": true} {
		kind := kinds["claude"]
		if kind.fit(version); (kind.label != nil) != asPrompt {
			t.Errorf("version %q: a prompt is %t, want %t", version, kind.label != nil, asPrompt)
		}
	}
	codex := kinds["codex"]
	if codex.fit("0.1.0"); codex.label == nil {
		t.Error("each codex has its queue")
	}
	request := scripted.Request{Items: []scripted.Item{{Role: "user", Text: *codex.label + "go"}, {Role: "user", Text: "<mail>stay</mail>"}}}
	if !isPrompt(request, *codex.label+"go") || isPrompt(request, "stay") {
		t.Error("only a whole message of the user is a prompt")
	}
}
