package delivery

import (
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// Offer lists the best ways of Bridge into sessions of one kind, each as a phrase for
// documentation (KND-07).
type Offer struct {
	Mail     string // how mail reaches a session in a turn
	Wake     string // how mail starts a turn of an idle session
	Words    string // how the owner's words reach a session
	Children string // how words reach a native child
}

// OfferOf returns the offer of a kind. It is derived from the table of deliveries, and
// empty for an unknown kind.
func OfferOf(kind bridge.AgentKind) Offer {
	traits := bridge.TraitsOf(kind)
	if traits.Kind == "" {
		return Offer{}
	}
	r := rows[traits.Waker]
	return Offer{Mail: r.mailPhrase(), Wake: wakePhrases[traits.Waker], Words: r.wordsPhrase(), Children: r.childPhrase()}
}

var wakePhrases = map[bridge.Waker]string{
	bridge.NoWaker:     "no: mail waits for the next turn",
	bridge.HookWaker:   "by a waiting hook, or its channel",
	bridge.QueueWaker:  "by its own queue, within 10 seconds",
	bridge.PluginWaker: "by its plugin",
}

func (r row) mailPhrase() string {
	if slices.ContainsFunc(r.mail, func(l line) bool { return l.way == ByPlugin }) {
		return "by its plugin"
	}
	return "by its hooks"
}

func (r row) wordsPhrase() string {
	switch {
	case slices.ContainsFunc(r.owner, func(l line) bool { return l.transport == chat.Native }):
		return "by its own queue, as your prompt"
	case slices.ContainsFunc(r.owner, func(l line) bool { return l.refuses != nil }):
		return "by its mod, as your prompt; else as mail"
	default:
		return "as mail"
	}
}

func (r row) childPhrase() string {
	if r.child.transport == chat.Native {
		return "to the child, while its background server runs"
	}
	return "as a note to the parent"
}
