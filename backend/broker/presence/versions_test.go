package presence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestCAN_03_WhichRegistrationIsABeginning(t *testing.T) {
	s := &session.Session{ID: "p1"}
	for name, tt := range map[string]struct {
		args api.Register
		want bool
	}{
		"a new session":             {api.Register{}, true},
		"one that was known":        {api.Register{Previous: "p1"}, false},
		"one that hooks registered": {api.Register{Hooks: true}, false},
	} {
		if got := Begins(s, tt.args) == s; got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCAN_03_ASessionHasTheFaultsOfItsOwnVersion(t *testing.T) {
	p := Versions{New(Options{Now: time.Now})}
	join := func(id string, kind bridge.AgentKind) *session.Session {
		s := &session.Session{ID: id, Kind: kind}
		p.Roster.Join(s, id)
		p.Boxes[id] = mailbox.New()
		return s
	}
	older, newer, other, unknown := join("older", bridge.Codex), join("newer", bridge.Codex), join("other", bridge.Claude), join("unknown", bridge.Codex)
	broken := proof.Faults{proof.Wake: "2"}
	faults := func(kind bridge.AgentKind, version string) proof.Faults {
		if kind == bridge.Codex && version == "2" {
			return broken
		}
		return nil
	}
	p.Set(older, "1", faults)
	p.Set(older, "2", faults) // the CLI was updated: a running agent keeps its version
	p.Set(newer, "2", faults)
	p.Set(other, "2", faults)
	p.Set(nil, "2", faults)
	p.Set(&session.Session{ID: "gone"}, "2", faults)
	if diff := cmp.Diff(broken, p.Boxes["newer"].Broken); diff != "" {
		t.Errorf("a session that begins: %s", diff)
	}
	p.MarkBroken(faults)
	for s, want := range map[*session.Session]proof.Faults{older: nil, newer: broken, other: nil, unknown: nil} {
		if diff := cmp.Diff(want, p.Boxes[s.ID].Broken); diff != "" {
			t.Errorf("%s: %s", s.ID, diff)
		}
		if got := p.Boxes.Facts(s).Broken; len(got) != len(want) {
			t.Errorf("%s: the facts have %v", s.ID, got)
		}
	}
	p.MarkBroken(func(bridge.AgentKind, string) proof.Faults { return nil })
	if got := p.Boxes["newer"].Broken; len(got) != 0 {
		t.Errorf("mended, and still %v", got)
	}
}
