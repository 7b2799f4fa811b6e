package broker

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
)

// spokenOf says by which ways each role may tell that mail went, and which stage
// that is at most. Of queues, prompts and activity the broker alone speaks, and a
// mod has an operation of its own (mod.go).
var spokenOf = map[api.Role]map[mail.Via]bridge.Stage{
	api.RoleHook:    {mail.ViaHook: bridge.StageHanded, mail.ViaWakeHook: bridge.StageHanded},
	api.RoleSession: {mail.ViaTool: bridge.StageConsumed, mail.ViaChannel: bridge.StageHanded},
	api.RolePlugin:  {mail.ViaPlugin: bridge.StageHanded},
}

// confirmDetail is the one word that a client may add: the host's event or the
// tool.
var confirmDetail = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

// checkConfirm returns the confirmation as it is recorded, or refuses what the
// role may not say.
func checkConfirm(role api.Role, args api.Confirm) (api.Confirm, error) {
	if args.Stage != bridge.StageHanded && args.Stage != bridge.StageConsumed {
		return args, bridge.Errorf(bridge.Invalid, "a loan is confirmed as handed or consumed, not %q", args.Stage)
	}
	if args.Via == "" {
		args = ofOlder(role, args)
	}
	if !confirmDetail.MatchString(args.Detail) {
		return args, bridge.Errorf(bridge.Invalid, "the detail of a confirmation is one word of at most 64 letters, digits, dots, dashes and underscores")
	}
	most, ok := spokenOf[role][args.Via]
	if !ok {
		known := slices.Sorted(maps.Keys(spokenOf[role]))
		if len(known) == 0 {
			return args, bridge.Errorf(bridge.Denied, "a connection with the role %q hands no mail over and confirms none", role)
		}
		return args, bridge.Errorf(bridge.Denied, "a connection with the role %q cannot say that mail went by %q, only by %q", role, args.Via, known)
	}
	if args.Stage == bridge.StageConsumed && most != bridge.StageConsumed {
		return args, bridge.Errorf(bridge.Denied, "mail that went by %q is handed over: what the session does next tells whether it was read", args.Via)
	}
	return args, nil
}

// ofOlder gives the confirmation of a client of an older version its way: such a
// client says in words what its role and the stage tell.
func ofOlder(role api.Role, args api.Confirm) api.Confirm {
	switch {
	case role == api.RoleHook && args.Evidence == mail.ViaWakeHook.Evidence(""):
		args.Via = mail.ViaWakeHook
	case role == api.RoleHook:
		args.Via = mail.ViaHook
	case role == api.RoleSession && args.Stage == bridge.StageConsumed:
		args.Via = mail.ViaTool
	case role == api.RoleSession:
		args.Via = mail.ViaChannel
	case role == api.RolePlugin:
		args.Via = mail.ViaPlugin
	}
	if _, word, ok := strings.Cut(args.Evidence, " "); ok && confirmDetail.MatchString(word) {
		args.Detail = word
	}
	return args
}

// markOfLine is the fact in a line of the read journal. A line of an older program
// has words alone.
func markOfLine(line ipc.JournalLine) (mail.Mark, error) {
	mark := mail.Mark{MessageID: line.MessageID, Recipient: line.Recipient, At: line.At, Via: line.Via, Evidence: line.Evidence, Process: line.Process}
	switch {
	case line.Stage != bridge.StageHanded && line.Stage != bridge.StageConsumed:
		return mark, bridge.Errorf(bridge.Invalid, "a receipt says handed or consumed, not %q", line.Stage)
	case line.Via == "":
		mark.Via = mail.ViaOf(line.Stage, line.Evidence)
		return mark, nil
	}
	for _, ways := range spokenOf {
		if most, ok := ways[line.Via]; ok && (line.Stage == bridge.StageHanded || most == bridge.StageConsumed) {
			mark.Evidence = line.Via.Evidence(line.Detail)
			return mark, nil
		}
	}
	return mark, bridge.Errorf(bridge.Invalid, "a receipt cannot say that mail was %s by %q", line.Stage, line.Via)
}

// nextActivity says by which sign a session went on.
func nextActivity(event string) string { return "next activity: " + event }
