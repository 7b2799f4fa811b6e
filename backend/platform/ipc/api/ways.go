package api

import (
	"maps"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// spokenOf holds the delivery ways that each role may report, with the highest
// stage. Only the broker reports queues, prompts and activity, and a mod has a
// separate operation.
var spokenOf = map[Role]map[mail.Via]bridge.Stage{
	RoleHook:    {mail.ViaHook: bridge.StageHanded, mail.ViaWakeHook: bridge.StageHanded},
	RoleSession: {mail.ViaTool: bridge.StageConsumed, mail.ViaChannel: bridge.StageHanded},
	RolePlugin:  {mail.ViaPlugin: bridge.StageHanded},
}

// isDetail reports whether detail is a valid detail: the host's event or the tool. It
// uses no regular expression, because hook processes link this package.
func isDetail(detail string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(detail) <= 64 && strings.IndexFunc(detail, func(r rune) bool { return !strings.ContainsRune(letters, r) }) < 0
}

// Of returns the ack in its stored form. It fails with Invalid for a bad stage or
// detail, and with Denied if the role may not report it.
func (c Ack) Of(role Role) (Ack, error) {
	if c.Stage != bridge.StageHanded && c.Stage != bridge.StageConsumed {
		return c, bridge.Errorf(bridge.Invalid, "a lease is acknowledged as handed or consumed, not %q", c.Stage)
	}
	if c.Via == "" {
		c = c.ofOlder(role)
	}
	if !isDetail(c.Detail) {
		return c, bridge.Errorf(bridge.Invalid, "the detail of a confirmation is one word of at most 64 letters, digits, dots, dashes and underscores")
	}
	most, ok := spokenOf[role][c.Via]
	if !ok {
		known := slices.Sorted(maps.Keys(spokenOf[role]))
		if len(known) == 0 {
			return c, bridge.Errorf(bridge.Denied, "a connection with the role %q hands no mail over and confirms none", role)
		}
		return c, bridge.Errorf(bridge.Denied, "a connection with the role %q cannot say that mail went by %q, only by %q", role, c.Via, known)
	}
	if c.Stage == bridge.StageConsumed && most != bridge.StageConsumed {
		return c, bridge.Errorf(bridge.Denied, "mail that went by %q is handed over: what the session does next tells whether it was read", c.Via)
	}
	return c, nil
}

// ofOlder adds Via to the ack of an older client, derived from its role, stage and
// evidence.
func (c Ack) ofOlder(role Role) Ack {
	switch {
	case role == RoleHook && c.Evidence == mail.ViaWakeHook.Evidence(""):
		c.Via = mail.ViaWakeHook
	case role == RoleHook:
		c.Via = mail.ViaHook
	case role == RoleSession && c.Stage == bridge.StageConsumed:
		c.Via = mail.ViaTool
	case role == RoleSession:
		c.Via = mail.ViaChannel
	case role == RolePlugin:
		c.Via = mail.ViaPlugin
	}
	if _, detail, ok := strings.Cut(c.Evidence, " "); ok && isDetail(detail) {
		c.Detail = detail
	}
	return c
}

// MayReport reports whether any role may report that stage for that way.
func MayReport(via mail.Via, stage bridge.Stage) bool {
	for _, ways := range spokenOf {
		if most, ok := ways[via]; ok && (stage == bridge.StageHanded || most == bridge.StageConsumed) {
			return true
		}
	}
	return false
}
