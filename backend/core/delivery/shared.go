package delivery

// Lines and texts of more than one kind.

func anyFacts(Facts) bool { return true }

func noHooks(f Facts) bool { return !f.Hooks }

var (
	// noHook is the way if no hook has reported yet.
	noHook = line{open: noHooks, way: ByTools, wake: WakeNone, detail: silent + again, words: inInbox}

	// sleeping is the way through hooks if nothing wakes the session.
	sleeping = line{
		open: anyFacts, way: ByHooks, wake: WakeNone,
		detail: byHooks + sleepsOn, words: sentence{busy: busyHooks, idle: nextTurn + "; nothing can wake it now."},
	}

	inInbox = always("It waits in the inbox until {name} looks there: no hook has reported from it yet.")

	// parentOnly is the entry of a kind without a way to its children.
	parentOnly = childRow{
		words: "A native child of {kind} takes no direct input: send a note to its parent {name}.",
		brief: "only through its parent",
		limit: "A native child of {kind} takes no direct input. A note to {name} names it and carries your words; what {name} does with them is its own turn's matter.",
	}
)

const (
	byHooks   = "Its hooks hand mail over at the next " + mailSteps
	mailSteps = "tool call, prompt or end of a turn" // the steps of mailRoutes
	sleepsOn  = "; while it is idle, mail waits for its next turn."
	busyHooks = "The hooks of {name} hand it over at the next safe step; the running turn is not interrupted."
	nextTurn  = "{name} reads it at its next turn"
	silent    = "No hook has reported from this session yet: mail waits until it calls inbox. If that stays so, "
	again     = "run `bridge install {kind}` and start the session again."
)
