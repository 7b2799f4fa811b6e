package delivery

import "bridge/backend/core/chat"

// queueRow is the row of a kind that receives the owner's messages, also those to a
// child, through its own queue after the end of a turn. Other mail comes through its
// hooks; while it is idle, a queue entry requests a turn (CHT-04).
var queueRow = row{
	owner: []line{
		{
			open: func(f Facts) bool { return f.SessionID == "" }, transport: chat.Bridge,
			words: always("{name} has not told its thread yet, so it goes to its inbox."),
		},
		{
			open: noHooks, transport: chat.Native,
			words: always(toQueue + "if {kind} does not take it, it waits in the inbox until {name} looks there."),
		},
		{
			open: func(f Facts) bool { return f.Failed }, transport: chat.Native,
			words: sentence{busy: toQueue + afterTurn, idle: toQueue + "if that fails as it did last time, it waits as mail for the next turn."},
		},
		{open: threads, transport: chat.Native, words: sentence{busy: toQueue + afterTurn, idle: toQueue + atOnce}},
		{open: anyFacts, transport: chat.Native, words: sentence{busy: toQueue + afterTurn, idle: toQueue + seldom}},
	},
	taken: []line{
		{open: threads, words: sentence{busy: inQueue + afterTurn, idle: inQueue + atOnce}},
		{open: anyFacts, words: sentence{busy: inQueue + afterTurn, idle: inQueue + seldom}},
	},
	mail: []line{
		{
			open: noHooks, way: ByTools, wake: WakeNone,
			detail: silent + "{kind} may not trust the hooks: " + again, words: inInbox,
		},
		{
			open: func(f Facts) bool { return f.Failed }, way: ByHooks, wake: WakeFailed,
			detail: byHooks + "; it could not be woken while idle.",
			words:  sentence{busy: busyHooks, idle: nextTurn + "; the last wake did not reach it."},
		},
		{
			open: func(f Facts) bool { return f.SessionID != "" && f.Threads }, way: ByHooks, wake: WakeOpen,
			detail: byHooks + "; while it is idle, {kind}'s queue wakes it when the wake policy allows it.", words: wokenByQueue,
		},
		{
			open: func(f Facts) bool { return f.SessionID != "" }, way: ByHooks, wake: WakeSlow,
			detail: byHooks + "; while it is idle, {kind}'s queue wakes it within 10 seconds when the wake policy allows it: " + seldomQueue + ".",
			words:  wokenByQueue,
		},
		sleeping,
	},
	child: childRow{
		transport: chat.Native,
		words:     "It goes to the child's own queue in {kind}; " + childAfterTurn,
		taken:     "It is in the child's own queue in {kind}; " + childAfterTurn,
		brief:     "direct input where {kind} takes it",
		limit:     "{kind} takes words for a child only while its background server runs both; it reads them after its turn. Where {kind} takes none, a note to {name} carries them.",
		hint:      "To the child: its own queue in {kind}. ",
	},
}

func threads(f Facts) bool { return f.Threads }

var wokenByQueue = sentence{busy: busyHooks, idle: "A wake through {kind}'s queue starts a turn of {name} with it, or its next turn shows it."}

const (
	toQueue   = "It goes to {kind}'s queue; "
	inQueue   = "It is in {kind}'s queue; "
	afterTurn = "{name} reads it when its turn has ended."
	atOnce    = "{name} reads it at once."
	seldom    = "{name} reads it within 10 seconds: " + seldomQueue + "."

	childAfterTurn = "the child reads it when its turn has ended."

	// seldomQueue is why an idle session may be slow: its poll interval is fixed, and no
	// public interface triggers an earlier poll.
	seldomQueue = "{kind} looks at its queue every 10 seconds when it runs without its background server"
)
