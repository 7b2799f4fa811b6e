package api

// The operations, each with its typed call. Who may call which stands in callers.
const (
	OpRegister  = "register"
	OpLeave     = "leave"
	OpHook      = "hook"
	OpConfirm   = "confirm"
	OpReturn    = "return"
	OpPeers     = "peers"
	OpSend      = "send"
	OpSent      = "send_status"
	OpInbox     = "inbox"
	OpWait      = "wait"
	OpDecide    = "decide"
	OpDecisions = "decisions"
	OpSearch    = "search_history"
	OpAutoWake  = "auto_wake"
	OpStatus    = "status"
	OpSubscribe = "subscribe"
	OpTicket    = "ticket"
	OpRetire    = "retire"
)

// OpShow asks a desktop app to show its window. The app serves it on an endpoint
// of its own; the broker does not know it.
const OpShow = "show"

// OpWakeWait waits in the background for mail that may wake an idle session.
const OpWakeWait = "wake_wait"

// OpTake takes the mail that is to be pushed into a session's channel.
const OpTake = "take"

// Empty is the arguments or the answer of an operation that has none.
type Empty struct{}
