package mux

import (
	"context"
	"errors"
	"testing"

	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

func TestMSG_01_ACallerOfANewerVersionIsServed(t *testing.T) {
	m := New()
	HandleLink(m, api.OpHook, func(_ context.Context, _ *presence.Link, call session.HookCall) (session.HookReply, error) {
		return session.HookReply{Text: call.SessionID}, nil
	})
	got, err := m.Serve(t.Context(), nil, api.OpHook.Name, []byte(`{"sessionId":"s1","whatComesNext":{"more":true}}`))
	if reply, _ := got.(session.HookReply); err != nil || reply.Text != "s1" {
		t.Errorf("a hook of a newer version is answered with %v, %v", got, err)
	}
}

// identify serves an operation that answers with name.
func identify(m *Mux, name string) {
	Handle(m, api.OpIdentify, func(context.Context, *ipc.Conn, api.Empty) (api.PCName, error) { return api.PCName{Name: name}, nil })
}

func serve(t *testing.T, m *Mux, op string, args string) (any, error) {
	t.Helper()
	return m.Serve(t.Context(), &presence.Link{}, op, []byte(args))
}

func TestARefusedOperationIsServedOnceItsPartIsThere(t *testing.T) {
	m := New()
	absent := bridge.Errorf(bridge.Unsupported, "there is no network")
	m.Refuse(absent, api.OpIdentify.Row, api.OpNetwork.Row)
	if _, err := serve(t, m, api.OpIdentify.Name, `{}`); !errors.Is(err, absent) {
		t.Errorf("without its part it fails with %v", err)
	}
	identify(m, "desk")
	if got, err := serve(t, m, api.OpIdentify.Name, `{}`); err != nil || got != (api.PCName{Name: "desk"}) {
		t.Errorf("with its part it is answered with %v, %v", got, err)
	}
	if _, err := serve(t, m, api.OpNetwork.Name, `{}`); !errors.Is(err, absent) {
		t.Errorf("another operation of the part fails with %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an operation was served twice")
		}
	}()
	identify(m, "nas")
}

func TestAGuardRefusesWhatItsViewServes(t *testing.T) {
	m := New()
	denied := bridge.Errorf(bridge.Denied, "only the owner")
	isDenied := true
	identify(m.Guarded(func(context.Context, *ipc.Conn) error {
		if isDenied {
			return denied
		}
		return nil
	}), "desk")
	Handle(m, api.OpNetwork, func(context.Context, *ipc.Conn, api.Empty) (api.Network, error) { return api.Network{}, nil })
	if _, err := serve(t, m, api.OpIdentify.Name, `no JSON`); !errors.Is(err, denied) {
		t.Errorf("it fails with %v: a guard comes before the arguments", err)
	}
	if _, err := serve(t, m, api.OpNetwork.Name, `{}`); err != nil {
		t.Errorf("what was served beside the view fails with %v", err)
	}
	isDenied = false
	if got, err := serve(t, m, api.OpIdentify.Name, `{}`); err != nil || got != (api.PCName{Name: "desk"}) {
		t.Errorf("an allowed caller is answered with %v, %v", got, err)
	}
}

func TestCheckRefusesOtherRolesAndJobs(t *testing.T) {
	m := New()
	identify(m, "desk")
	HandleLink(m, api.OpSearch, func(context.Context, *presence.Link, api.SearchArgs) (api.SearchResult, error) {
		return api.SearchResult{}, nil
	})
	for _, tt := range []struct {
		name, op string
		role     api.Role
		inside   string
		want     bridge.Code
	}{
		{"the owner", api.OpIdentify.Name, api.RoleOwner, "", ""},
		{"a session", api.OpIdentify.Name, api.RoleSession, "", bridge.Denied},
		{"a job, what is closed to jobs", api.OpIdentify.Name, api.RoleOwner, "codex-job-1", bridge.Denied},
		{"a job, what is open to jobs", api.OpSearch.Name, api.RoleSession, "codex-job-1", ""},
		{"an operation that nothing serves", api.OpNetwork.Name, api.RoleOwner, "", bridge.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := m.Check(tt.op, tt.role, tt.inside); bridge.CodeOf(err) != tt.want {
				t.Errorf("it fails with %v, want %q", err, tt.want)
			}
		})
	}
}

func TestServeFailsWithoutAMethodArgumentsOrACaller(t *testing.T) {
	m := New()
	identify(m, "desk")
	Handle(m, api.OpNetwork, func(ctx context.Context, _ *ipc.Conn, _ api.Empty) (api.Network, error) {
		return api.Network{}, ctx.Err()
	})
	if _, err := serve(t, m, "nothing", `{}`); bridge.CodeOf(err) != bridge.Invalid || m.Has("nothing") {
		t.Errorf("an unknown operation fails with %v", err)
	}
	if _, err := serve(t, m, api.OpIdentify.Name, `no JSON`); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("arguments that are no JSON fail with %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Serve(cancelled, &presence.Link{}, api.OpNetwork.Name, []byte(`{}`)); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("a caller that has gone is answered with %v", err)
	}
}
