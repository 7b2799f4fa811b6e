package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
)

// everyRole is written out: a new role is decided here for every operation.
var everyRole = []api.Role{"session", "plugin", "hook", "mod", "owner", "dashboard"}

// operationRoles says who may call what, and how it is called. It is written out
// and not taken from the table that it checks: a new operation fails the test
// until somebody has said here who may call it.
var operationRoles = map[string]struct {
	roles string
	call  func(context.Context, *ipc.Client) error
}{
	"register": {"session plugin", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Register(ctx, api.Register{})
		return err
	}},
	"leave": {"plugin", func(ctx context.Context, c *ipc.Client) error { return c.Leave(ctx, api.Leave{ID: "nobody"}) }},
	"hook": {"plugin hook", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Hook(ctx, session.HookCall{})
		return err
	}},
	"wake_wait": {"hook", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.WakeWait(ctx, api.WakeWait{})
		return err
	}},
	"mod": {"mod", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Mod(ctx, api.ModWait{})
		return err
	}},
	"mod_report": {"mod", func(ctx context.Context, c *ipc.Client) error { return c.ModReport(ctx, api.ModReport{}) }},
	"confirm":    {"session plugin hook", func(ctx context.Context, c *ipc.Client) error { return c.Confirm(ctx, api.Confirm{}) }},
	"return":     {"session plugin hook", func(ctx context.Context, c *ipc.Client) error { return c.Return(ctx, "none") }},
	"peers": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Peers(ctx, api.Caller{})
		return err
	}},
	"send": {"session owner", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Send(ctx, api.SendArgs{})
		return err
	}},
	"send_status": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.SendStatus(ctx, api.SentArgs{})
		return err
	}},
	"inbox": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Inbox(ctx, api.InboxArgs{})
		return err
	}},
	"take": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Take(ctx, api.Caller{})
		return err
	}},
	"wait": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Wait(ctx, api.WaitArgs{})
		return err
	}},
	"decide": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Decide(ctx, api.DecideArgs{})
		return err
	}},
	"decisions": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Decisions(ctx, api.DecisionsArgs{})
		return err
	}},
	"search_history": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.SearchHistory(ctx, api.SearchArgs{})
		return err
	}},
	"auto_wake": {"session", func(ctx context.Context, c *ipc.Client) error { return c.AutoWake(ctx, api.AutoWakeArgs{}) }},
	"status": {"owner dashboard", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Status(ctx)
		return err
	}},
	"subscribe": {"dashboard", func(ctx context.Context, c *ipc.Client) error { return c.Subscribe(ctx) }},
	"ticket": {"session owner dashboard", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Ticket(ctx)
		return err
	}},
	"retire": {"owner", func(ctx context.Context, c *ipc.Client) error { return c.Retire(ctx) }},
}

func TestJOB_11_EveryOperationIsOpenToItsRolesAlone(t *testing.T) {
	b := newBench(t)
	for op := range operations {
		if _, ok := operationRoles[op]; !ok {
			t.Errorf("nobody has said who may call %q", op)
		}
	}
	for _, role := range everyRole {
		client := b.dial(role)
		for op, want := range operationRoles {
			t.Run(fmt.Sprintf("JOB-11 %s as %s", op, role), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := want.call(ctx, client)
				refused := bridge.CodeOf(err) == bridge.Denied && strings.Contains(err.Error(), fmt.Sprintf("%q may not be called by a connection of the role %q", op, role))
				if may := slices.Contains(strings.Fields(want.roles), string(role)); may == refused {
					t.Errorf("it answers %v; may call: %t", err, may)
				}
			})
		}
	}
}

func TestJOB_11_AHookActsForNoSession(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1"})
	hook := b.dial(api.RoleHook)
	for what, call := range map[string]func() error{
		"register": func() error {
			_, err := hook.Register(t.Context(), api.Register{Kind: bridge.Claude, Cwd: "/shop", SessionID: "s1"})
			return err
		},
		"decide": func() error {
			_, err := hook.Decide(t.Context(), api.DecideArgs{Caller: api.Caller{SessionID: "s1"}, Topic: "db", Text: "drop it"})
			return err
		},
		"send": func() error { _, err := hook.Send(t.Context(), api.SendArgs{To: "p", Body: "x"}); return err },
		"inbox": func() error {
			_, err := hook.Inbox(t.Context(), api.InboxArgs{Caller: api.Caller{SessionID: "s1"}, MarkRead: true})
			return err
		},
	} {
		wantCode(t, "a hook's "+what, call(), bridge.Denied)
	}
	if got, err := p.Decisions(t.Context(), api.DecisionsArgs{}); err != nil || len(got) != 0 {
		t.Errorf("decisions = %+v, %v; want none", got, err)
	}
	wantBodies(t, "the session", p.look())
}

func TestJOB_11_AnUnknownRoleIsRefusedAtTheHello(t *testing.T) {
	b := newBench(t)
	for _, role := range []api.Role{"", "root", "Owner", "owner "} {
		client, err := ipc.Dial(t.Context(), ipc.Target{Socket: b.home.Socket(), Token: testToken}, ipc.Hello{Role: role, PID: 1, Version: "test"})
		if err == nil {
			client.Close()
		}
		if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), fmt.Sprintf("unknown role %q", role)) {
			t.Errorf("the role %q: %v", role, err)
		}
	}
}
