package delivery

import "bridge/backend/core/chat"

// hookRow is the row of a kind that receives the owner's messages through its channel,
// or else its mod, or else its hooks. A hook that waits in the background wakes it
// (CHT-03, CHT-20).
var hookRow = row{
	owner: []line{{
		open: func(f Facts) bool { return f.Mod && !f.Channel }, transport: chat.Bridge, refuses: chat.ModRefusal,
		words: sentence{
			busy: "The mod of {name} enters it as a prompt of yours when the turn has ended.",
			idle: "The mod of {name} enters it as a prompt of yours.",
		},
	}},
	mail: []line{
		{
			open: func(f Facts) bool { return f.Channel }, way: ByChannel, wake: WakeOpen,
			detail: "While it is idle, mail is pushed into the session's channel as it arrives; at work, its hooks hand it over at the next step.",
			words:  sentence{busy: busyHooks, idle: "It goes to {name}'s channel, which starts a turn with it."},
		},
		noHook,
		{
			open: func(f Facts) bool { return f.Mod && f.Waiting }, way: ByMod, wake: WakeOpen,
			detail: modWords + wokenByHook, words: byWakeHook,
		},
		{
			open: func(f Facts) bool { return f.Mod }, way: ByMod, wake: WakeOpen,
			detail: modWords + sleepsOn, words: byLaterHook,
		},
		{
			open: func(f Facts) bool { return f.Waiting }, way: ByHooks, wake: WakeOpen,
			detail: byHooks + wokenByHook + " That holds for your words, too: no mod of Bridge is there to enter them as prompts of yours.",
			words:  byWakeHook,
		},
		{open: anyFacts, way: ByHooks, wake: WakeNone, detail: byHooks + sleepsOn, words: byLaterHook},
	},
	child: parentOnly,
}

const (
	// wakeCaveat is the CLI's own statement about the text of a wake hook.
	wakeCaveat  = "By a wake hook {kind} tells its model that the text is no user input."
	wokenByHook = "; while it is idle, a waiting hook wakes it when the wake policy allows it. " + wakeCaveat
	modWords    = "Its mod enters your words as prompts of yours when its turn has ended. Mail of other sessions comes by its hooks, at the next " + mailSteps
)

var (
	byWakeHook  = sentence{busy: busyHooks, idle: "A wake hook starts a turn of {name} with it, or the next turn shows it. " + wakeCaveat}
	byLaterHook = sentence{busy: busyHooks, idle: "No wake hook waits now: " + nextTurn + ", or when a wake hook comes first. " + wakeCaveat}
)
