package api

import (
	"maps"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// spokenOf says by which ways each role may tell that mail went, and which stage
// that is at most. Of queues, prompts and activity the broker alone speaks, and a
// mod has an operation of its own.
var spokenOf = map[Role]map[mail.Via]bridge.Stage{
	RoleHook:    {mail.ViaHook: bridge.StageHanded, mail.ViaWakeHook: bridge.StageHanded},
	RoleSession: {mail.ViaTool: bridge.StageConsumed, mail.ViaChannel: bridge.StageHanded},
	RolePlugin:  {mail.ViaPlugin: bridge.StageHanded},
}

// isDetail reports whether a client may add the word: the host's event or the tool.
// A hook's process, which links this package, compiles no pattern for it.
func isDetail(word string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(word) <= 64 && strings.IndexFunc(word, func(r rune) bool { return !strings.ContainsRune(letters, r) }) < 0
}

// Of returns the ack as it is recorded, or refuses what the role may not
// say.
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

// ofOlder gives the ack of a client of an older version its way: such a
// client says in words what its role and the stage tell.
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
	if _, word, ok := strings.Cut(c.Evidence, " "); ok && isDetail(word) {
		c.Detail = word
	}
	return c
}

// MaySay reports whether any role may say that mail reached the stage by that way.
func MaySay(via mail.Via, stage bridge.Stage) bool {
	for _, ways := range spokenOf {
		if most, ok := ways[via]; ok && (stage == bridge.StageHanded || most == bridge.StageConsumed) {
			return true
		}
	}
	return false
}
