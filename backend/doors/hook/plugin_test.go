package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
)

// plugin is opencode's side of the lines.
type plugin struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
}

func startPlugin(t *testing.T, b brokertest.Running) plugin {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ended := make(chan error, 1)
	options := Options{Home: b.Home, Version: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	go func() {
		ended <- RunPlugin(context.WithoutCancel(t.Context()), options, bridge.OpenCode, b.Target, nil, inRead, outWrite)
	}()
	t.Cleanup(func() {
		inWrite.Close()
		go io.Copy(io.Discard, outRead) // so that a last line is not stuck
		if err := <-ended; err != nil {
			t.Errorf("the plugin's child ended with %v", err)
		}
		outWrite.Close()
	})
	return plugin{t: t, in: inWrite, lines: bufio.NewScanner(outRead)}
}

func (p plugin) say(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// reply returns the next answer, passing over pushes.
func (p plugin) reply() hooks.PluginReply {
	p.t.Helper()
	for p.lines.Scan() {
		var reply hooks.PluginReply
		if err := json.Unmarshal(p.lines.Bytes(), &reply); err != nil {
			p.t.Fatal(err)
		}
		if reply.ID != 0 {
			return reply
		}
	}
	p.t.Fatalf("the plugin's child ended: %v", p.lines.Err())
	return hooks.PluginReply{}
}

func TestCHT_07_MSG_06_APluginsLinesKeepTheirOrder(t *testing.T) {
	b := brokertest.Serve(t)
	p := startPlugin(t, b)
	p.say(`{"id":1,"event":"session.created","call":{"sessionId":"ses_1","cwd":"/work/shop"}}`)
	if got := p.reply(); got.ID != 1 || got.Error != "" {
		t.Fatalf("registering answered %+v", got)
	}
	owner, err := ipc.Dial(t.Context(), b.Target, ipc.Hello{Role: api.RoleOwner, PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	sent, err := owner.Send(t.Context(), api.SendArgs{To: "ses_1", Body: "wake up"})
	if err != nil || !sent.Recipients[0].Wake {
		t.Fatalf("send = %+v, %v; want a wake asked of the idle session", sent, err)
	}
	p.say(`{"id":2,"event":"session.idle","call":{"sessionId":"ses_1"}}`)
	reply := p.reply()
	if !strings.Contains(reply.Text, "wake up") || reply.Lease == nil {
		t.Fatalf("idle brought %+v, want the mail", reply)
	}
	// It reached no session: it is offered again, to whatever comes next.
	p.say(`{"id":10,"back":"`+reply.Lease.ID+`"}`, `{"id":11,"event":"session.idle","call":{"sessionId":"ses_1"}}`)
	if got := p.reply(); got.ID != 10 || got.Error != "" {
		t.Fatalf("giving back answered %+v", got)
	}
	if reply = p.reply(); reply.ID != 11 || !strings.Contains(reply.Text, "wake up") || reply.Lease == nil {
		t.Fatalf("idle again brought %+v, want the mail", reply)
	}
	lease, err := json.Marshal(reply.Lease)
	if err != nil {
		t.Fatal(err)
	}
	// The next event comes right behind the ack and must not overtake it.
	p.say(`{"id":3,"confirm":{"loan":`+string(lease)+`,"stage":"handed","detail":"turn"}}`,
		`{"id":4,"event":"chat.message","call":{"sessionId":"ses_1","prompt":"x"}}`)
	for _, id := range []int64{3, 4} {
		if got := p.reply(); got.ID != id || got.Text != "" || got.Error != "" {
			t.Fatalf("answer %+v, want %d without text", got, id)
		}
	}
	row, err := b.DB.Find(t.Context(), sent.ID)
	if err != nil || row.Stage() != bridge.StageConsumed {
		t.Errorf("stage %s, %v; want consumed by the event after the confirmation", row.Stage(), err)
	}
}

// The next broker learns from the plugin whether a turn is in progress.
func TestPGE_08_ThePluginKnowsWhetherATurnIsInProgress(t *testing.T) {
	p := &Plugin{sessions: map[string]registered{"ses_1": {cwd: "/work/shop"}}}
	for _, tt := range []struct {
		call session.HookCall
		want bool
	}{
		{session.HookCall{SessionID: "ses_1", Event: session.EventPrompt}, true},
		{session.HookCall{SessionID: "ses_1", Event: session.EventStop, ChildID: "c1"}, true},
		{session.HookCall{SessionID: "ses_2", Event: session.EventStop}, true},
		{session.HookCall{SessionID: "ses_1", Event: session.EventIdle}, false},
	} {
		p.noteTurn(tt.call)
		if got := p.sessions["ses_1"].busy; got != tt.want {
			t.Errorf("after %+v a turn is in progress: %v, want %v", tt.call, got, tt.want)
		}
	}
	if _, known := p.sessions["ses_2"]; known {
		t.Error("an unknown session is registered")
	}
}
