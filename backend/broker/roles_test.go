package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// everyRole is written out: a new role is decided here for every operation.
var everyRole = []api.Role{"session", "plugin", "hook", "mod", "runner", "owner", "dashboard"}

// operationRoles says who may call what. It is written out and not taken from the
// table that it checks: a new operation fails the test until somebody has said here
// who may call it.
var operationRoles = map[string]string{
	"register":          "session plugin",
	"leave":             "plugin",
	"hook":              "plugin hook",
	"wake_wait":         "hook",
	"mod":               "mod",
	"mod_report":        "mod",
	"runner_hello":      "runner",
	"runner_report":     "runner",
	"runner_wait":       "runner",
	"spawn":             "session",
	"jobs":              "session owner dashboard",
	"job_result":        "session",
	"job_message":       "session",
	"job_cancel":        "session",
	"job_progress":      "session",
	"hand_off":          "session",
	"job_slots":         "session",
	"job_finish":        "owner",
	"invite":            "owner",
	"invitation":        "owner",
	"link":              "owner",
	"unlink":            "owner",
	"join_team":         "owner",
	"join_own_server":   "owner",
	"identify":          "owner",
	"leave_team":        "owner",
	"network":           "owner",
	"network_lists":     "owner",
	"send_files":        "owner",
	"transfer":          "owner",
	"transfers":         "owner",
	"cancel_transfer":   "owner",
	"models":            "session owner",
	"usage":             "session owner",
	"runs":              "owner",
	"run_log":           "owner",
	"approve":           "owner",
	"confirm":           "session plugin hook",
	"return":            "session plugin hook",
	"peers":             "session",
	"send":              "session owner",
	"send_status":       "session",
	"inbox":             "session",
	"take":              "session",
	"wait":              "session",
	"decide":            "session",
	"decisions":         "session",
	"exchange":          "owner",
	"record_proof":      "owner",
	"pin_decision":      "owner",
	"withdraw_decision": "owner",
	"search_history":    "session",
	"auto_wake":         "session",
	"status":            "owner dashboard",
	"cost_report":       "session hook",
	"costs":             "owner dashboard",
	"needs":             "owner dashboard",
	"ask_owner":         "session",
	"question":          "session",
	"withdraw_question": "session",
	"answer_question":   "owner",
	"prompt":            "plugin hook",
	"prompt_report":     "plugin hook",
	"away":              "owner",
	"rules":             "owner",
	"take_back_rule":    "owner",
	"subscribe":         "dashboard",
	"ticket":            "session owner dashboard",
	"entry":             "owner dashboard",
	"launch":            "owner dashboard",
	"retire":            "owner",
}

// servedElsewhere are operations that a broker does not know.
var servedElsewhere = []string{"show"}

func TestJOB_11_EveryOperationIsOpenToItsRolesAlone(t *testing.T) {
	b := newBench(t)
	for _, op := range api.Operations() {
		if _, ok := operationRoles[op.Name]; !ok && !slices.Contains(servedElsewhere, op.Name) {
			t.Errorf("nobody has said who may call %q", op.Name)
		}
	}
	for _, op := range b.broker.mux.Names() {
		if _, ok := operationRoles[op]; !ok {
			t.Errorf("%q is served and not in the table", op)
		}
	}
	for _, role := range everyRole {
		client := b.dial(role)
		for op, roles := range operationRoles {
			t.Run(fmt.Sprintf("JOB-11 %s as %s", op, role), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
				defer cancel()
				var answer json.RawMessage
				err := client.Call(ctx, op, api.Empty{}, &answer)
				if bridge.CodeOf(err) == bridge.Invalid && strings.Contains(err.Error(), "unknown operation") {
					t.Fatalf("nobody serves it: %v", err)
				}
				refused := bridge.CodeOf(err) == bridge.Denied && strings.Contains(err.Error(), fmt.Sprintf("%q may not be called by a connection of the role %q", op, role))
				if may := slices.Contains(strings.Fields(roles), string(role)); may == refused {
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
