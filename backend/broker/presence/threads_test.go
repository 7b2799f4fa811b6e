package presence

import (
	"testing"
	"time"

	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// threadServer is a server that stands for nobody, with what change says of it.
func threadServer(number int, change func(*Link)) *Link {
	l := &Link{Mod: wake.ModLink{Number: number}, Sessions: map[string]bool{}, Identity: &api.Register{Kind: bridge.Codex, Cwd: "/a", AgentPID: 77, Threads: true}}
	if change != nil {
		change(l)
	}
	return l
}

func TestMSG_03_WhichServerAThreadIsGiven(t *testing.T) {
	alone := func(l *Link) { l.Identity.Threads = false }
	elsewhere := func(l *Link) { l.Identity.Cwd = "/b" }
	for name, tt := range map[string]struct {
		servers []*Link
		want    int // the server's number, 0 for none
	}{
		"the only one":                     {[]*Link{threadServer(1, nil)}, 1},
		"the one that waits longest":       {[]*Link{threadServer(2, nil), threadServer(1, nil), threadServer(3, nil)}, 1},
		"one in the same folder before":    {[]*Link{threadServer(1, elsewhere), threadServer(2, nil)}, 2},
		"one of another folder if need be": {[]*Link{threadServer(1, elsewhere)}, 1},
		"the only one without threads":     {[]*Link{threadServer(1, alone)}, 1},
		"none of several without threads":  {[]*Link{threadServer(1, alone), threadServer(2, alone)}, 0},
		"none that is shared":              {[]*Link{threadServer(1, func(l *Link) { l.Identity.Shared = true })}, 0},
		"none that stands for a session":   {[]*Link{threadServer(1, func(l *Link) { l.Sessions["s"] = true })}, 0},
		"none of another kind":             {[]*Link{threadServer(1, func(l *Link) { l.Identity.Kind = bridge.Claude })}, 0},
		"none of another agent":            {[]*Link{threadServer(1, func(l *Link) { l.Identity.AgentPID = 78 })}, 0},
		"none that has not registered":     {[]*Link{threadServer(1, func(l *Link) { l.Identity = nil })}, 0},
	} {
		t.Run("MSG-03 "+name, func(t *testing.T) {
			b := New(Options{Now: time.Now})
			for _, l := range tt.servers {
				b.Conns[new(ipc.Conn)] = l
			}
			got := 0
			if l := b.freeServerLocked(session.HookCall{Kind: bridge.Codex, Cwd: "/a", Ancestors: []int{5, 77}}); l != nil {
				got = l.Mod.Number
			}
			if got != tt.want {
				t.Errorf("it is given to server %d, want %d", got, tt.want)
			}
		})
	}
}
