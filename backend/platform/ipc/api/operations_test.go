package api

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// TestTheTableNamesEachOperationOnce: of two of one name the broker would serve
// one, with the roles of the other perhaps.
func TestTheTableNamesEachOperationOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Operations() {
		if row.Name == "" || seen[row.Name] {
			t.Errorf("the name %q stands twice, or is none", row.Name)
		}
		seen[row.Name] = true
		if len(row.roles) == 0 {
			t.Errorf("nobody may call %q", row.Name)
		}
		for _, role := range row.roles {
			if err := CheckRole(role); err != nil {
				t.Errorf("%q is open to a role that no connection can have: %v", row.Name, err)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d operations: the walk is broken", len(seen))
	}
}

func TestJOB_11_AnOperationIsOpenToItsRolesAlone(t *testing.T) {
	row := Row{Name: "drop", roles: []Role{RoleOwner, RoleMod}}
	for role, code := range map[Role]bridge.Code{
		RoleOwner: "", RoleMod: "", RoleSession: bridge.Denied, RoleDashboard: bridge.Denied, "": bridge.Denied, "Owner": bridge.Denied,
	} {
		err := row.CheckCaller(role)
		if code == "" && err != nil || code != "" && bridge.CodeOf(err) != code {
			t.Errorf("role %q: %v, want code %q", role, err, code)
		}
	}
	if bridge.CodeOf(Row{Name: "drop"}.CheckCaller("")) != bridge.Denied {
		t.Error("an operation without roles is open")
	}
}

func TestRWM_16_AWaitNamesItsSenderInEitherNormalForm(t *testing.T) {
	var d mail.Delivery
	d.From.Name = "codex-\u00fcber"
	for from, want := range map[string]bool{"codex-\u00fcber": true, "codex-u\u0308ber": true, "codex-uber": false} {
		if got := (WaitArgs{From: from}).Wants(d); got != want {
			t.Errorf("from %q: %t", from, got)
		}
	}
}
