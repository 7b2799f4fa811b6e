package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/session"
)

// everyRole is written out: a new role is decided here for every operation.
var everyRole = []ipc.Role{"session", "plugin", "hook", "mod", "owner", "dashboard"}

// operationRoles says who may call what, and how it is called. It is written out
// and not taken from the table that it checks: a new operation fails the test
// until somebody has said here who may call it.
var operationRoles = map[string]struct {
	roles string
	call  func(context.Context, *ipc.Client) error
}{
	"register": {"session plugin", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Register(ctx, ipc.Register{})
		return err
	}},
	"leave": {"plugin", func(ctx context.Context, c *ipc.Client) error { return c.Leave(ctx, ipc.Leave{ID: "nobody"}) }},
	"hook": {"plugin hook", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Hook(ctx, session.HookCall{})
		return err
	}},
	"wake_wait": {"hook", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.WakeWait(ctx, ipc.WakeWait{})
		return err
	}},
	"mod": {"mod", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Mod(ctx, ipc.ModWait{})
		return err
	}},
	"mod_report": {"mod", func(ctx context.Context, c *ipc.Client) error { return c.ModReport(ctx, ipc.ModReport{}) }},
	"confirm":    {"session plugin hook", func(ctx context.Context, c *ipc.Client) error { return c.Confirm(ctx, ipc.Confirm{}) }},
	"return":     {"session plugin hook", func(ctx context.Context, c *ipc.Client) error { return c.Return(ctx, "none") }},
	"peers": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Peers(ctx, ipc.Caller{})
		return err
	}},
	"send": {"session owner", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Send(ctx, ipc.SendArgs{})
		return err
	}},
	"send_status": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.SendStatus(ctx, ipc.SentArgs{})
		return err
	}},
	"inbox": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Inbox(ctx, ipc.InboxArgs{})
		return err
	}},
	"take": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Take(ctx, ipc.Caller{})
		return err
	}},
	"wait": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Wait(ctx, ipc.WaitArgs{})
		return err
	}},
	"decide": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Decide(ctx, ipc.DecideArgs{})
		return err
	}},
	"decisions": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Decisions(ctx, ipc.DecisionsArgs{})
		return err
	}},
	"search_history": {"session", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.SearchHistory(ctx, ipc.SearchArgs{})
		return err
	}},
	"auto_wake": {"session", func(ctx context.Context, c *ipc.Client) error { return c.AutoWake(ctx, ipc.AutoWakeArgs{}) }},
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
	p := b.join(ipc.Register{Name: "p", SessionID: "s1"})
	hook := b.dial(ipc.RoleHook)
	for what, call := range map[string]func() error{
		"register": func() error {
			_, err := hook.Register(t.Context(), ipc.Register{Kind: bridge.Claude, Cwd: "/shop", SessionID: "s1"})
			return err
		},
		"decide": func() error {
			_, err := hook.Decide(t.Context(), ipc.DecideArgs{Caller: ipc.Caller{SessionID: "s1"}, Topic: "db", Text: "drop it"})
			return err
		},
		"send": func() error { _, err := hook.Send(t.Context(), ipc.SendArgs{To: "p", Body: "x"}); return err },
		"inbox": func() error {
			_, err := hook.Inbox(t.Context(), ipc.InboxArgs{Caller: ipc.Caller{SessionID: "s1"}, MarkRead: true})
			return err
		},
	} {
		wantCode(t, "a hook's "+what, call(), bridge.Denied)
	}
	if got, err := p.Decisions(t.Context(), ipc.DecisionsArgs{}); err != nil || len(got) != 0 {
		t.Errorf("decisions = %+v, %v; want none", got, err)
	}
	wantBodies(t, "the session", p.look())
}

func TestJOB_11_AnUnknownRoleIsRefusedAtTheHello(t *testing.T) {
	b := newBench(t)
	for _, role := range []ipc.Role{"", "root", "Owner", "owner "} {
		client, err := ipc.Dial(t.Context(), ipc.Target{Socket: b.home.Socket(), Token: testToken}, ipc.Hello{Role: role, PID: 1, Version: "test"})
		if err == nil {
			client.Close()
		}
		if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), fmt.Sprintf("unknown role %q", role)) {
			t.Errorf("the role %q: %v", role, err)
		}
	}
}
