package mcpserver

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

func TestMSG_03_AServerThatIsToldToEndEndsWithoutAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	input, host := io.Pipe() // the host keeps it open
	defer host.Close()
	err := Run(ctx, Options{
		Register: api.Register{Kind: bridge.Codex},
		Target:   ipc.Target{Socket: filepath.Join(t.TempDir(), "nobody.sock")},
		Now:      time.Now, Log: slog.New(slog.DiscardHandler),
	}, input, io.Discard)
	if err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestMSG_04_ArgumentsThatAreNoObjectAreRefused(t *testing.T) {
	s := &Server{opts: Options{Register: api.Register{Kind: bridge.Claude}}}
	for name, tt := range map[string]struct {
		arguments string
		want      string // "" is a refusal
	}{
		"left out":  {"", "{}"},
		"nothing":   {"null", "{}"},
		"an object": {`{"limit":1}`, `{"limit":1}`},
		"a list":    {"[]", ""},
		"a word":    {`"limit"`, ""},
		"a number":  {"1", ""},
	} {
		got, err := s.readCall([]byte(tt.arguments), nil)
		if string(got.args) != tt.want || (tt.want == "") != (bridge.CodeOf(err) == bridge.Invalid) {
			t.Errorf("%s: %s, %v", name, got.args, err)
		}
	}
}

func TestMSG_01_WhatIsKnownOfTheSessionOutlivesABroker(t *testing.T) {
	var j joined
	j.set(api.Registered{ID: "p1", Name: "app"})
	j.became(api.Registered{ID: "p2", Name: "app", Hooks: true})
	j.set(api.Registered{}) // the next broker does not know yet whose server this is
	if j.id() != "p2" || !j.hooks() {
		t.Errorf("it is %q, hooks: %v", j.id(), j.hooks())
	}
}
