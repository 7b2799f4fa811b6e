package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// After a restart of the broker, a session whose hooks the earlier one received is in an
// unknown state until its next hook. It keeps the time of its first registration.
func TestPGE_08_AStateIsUnknownAfterARestart(t *testing.T) {
	agentPID := os.Getppid()
	long := time.Now().Add(-22 * time.Minute).UnixMilli()
	registry := func(t *testing.T, status string) (store string) {
		store = t.TempDir()
		entry := fmt.Sprintf(`{"pid":%d,"sessionId":"s1","status":%q,"statusUpdatedAt":%d}`, agentPID, status, time.Now().UnixMilli())
		if err := os.Mkdir(filepath.Join(store, "sessions"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(store, "sessions", fmt.Sprint(agentPID, ".json")), []byte(entry), 0o600); err != nil { //nolint:forbidigo // a test's file
			t.Fatal(err)
		}
		return store
	}
	type shown struct {
		state   string
		unknown bool
	}
	for _, tt := range []struct {
		name     string
		register func(t *testing.T) api.Register
		then     []session.Event
		want     shown
	}{
		{
			name:     "no hook came since",
			register: func(*testing.T) api.Register { return api.Register{Hooks: true, Previous: "p1", Since: long} },
			want:     shown{"idle", true},
		},
		{
			name:     "a hook came",
			register: func(*testing.T) api.Register { return api.Register{Hooks: true, Previous: "p1", Since: long} },
			then:     []session.Event{session.EventTool},
			want:     shown{"busy", false},
		},
		{
			name:     "a turn has ended since",
			register: func(*testing.T) api.Register { return api.Register{Hooks: true, Previous: "p1", Since: long} },
			then:     []session.Event{session.EventStop},
			want:     shown{"idle", false},
		},
		{
			name:     "no earlier broker had its hooks",
			register: func(*testing.T) api.Register { return api.Register{Previous: "p1", Since: long} },
			want:     shown{"idle", false},
		},
		{
			name:     "its plugin knows",
			register: func(*testing.T) api.Register { return api.Register{Kind: bridge.OpenCode, Since: long, Busy: true} },
			want:     shown{"busy", false},
		},
		{
			name: "claude's registry says busy",
			register: func(t *testing.T) api.Register {
				return api.Register{Hooks: true, Previous: "p1", Since: long, AgentPID: agentPID, HostKnown: true, CLIDataDir: registry(t, "busy")}
			},
			want: shown{"busy", false},
		},
		{
			name: "claude's registry says idle",
			register: func(t *testing.T) api.Register {
				return api.Register{Hooks: true, Previous: "p1", Since: long, AgentPID: agentPID, HostKnown: true, CLIDataDir: registry(t, "idle")}
			},
			want: shown{"idle", false},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			register := tt.register(t)
			register.Name, register.SessionID = "web", "s1"
			b.join(register)
			for _, event := range tt.then {
				b.hook(session.HookCall{Kind: register.Kind, Event: event, SessionID: "s1"}, true)
			}
			peers := b.status().Peers
			if len(peers) != 1 || peers[0].Since != long {
				t.Fatalf("peers = %+v, want one since %d", peers, long)
			}
			if got := (shown{peers[0].State, peers[0].UnknownSince > 0}); got != tt.want {
				t.Errorf("it is shown as %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("a time to come is no time", func(t *testing.T) {
		b := newBench(t)
		b.join(api.Register{Name: "web", SessionID: "s1", Since: time.Now().Add(time.Hour).UnixMilli()})
		if peers := b.status().Peers; peers[0].Since > time.Now().UnixMilli() {
			t.Errorf("it is connected since %d", peers[0].Since)
		}
	})
}
