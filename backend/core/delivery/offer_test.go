package delivery

import (
	"testing"

	"bridge/backend/core/bridge"
)

// The phrases of the documentation agree with what a session of the kind is offered.
func TestKND_07_TheOfferIsThatOfTheTable(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		got := OfferOf(kind)
		if got.Mail == "" || got.Wake == "" || got.Words == "" || got.Children == "" {
			t.Errorf("%s: %+v", kind, got)
		}
		if sleeps := NeverWakes(kind) != ""; sleeps != (got.Wake == wakePhrases[bridge.NoWaker]) {
			t.Errorf("%s: wake %q, never wakes: %t", kind, got.Wake, sleeps)
		}
		direct := WordsOf(Facts{Kind: kind, Name: "it", SessionID: "s", Hooks: true, Plugin: true}).Child.Direct
		if direct != (got.Children != "as a note to the parent") {
			t.Errorf("%s: children %q, direct: %t", kind, got.Children, direct)
		}
		way, _, _ := Mail(Facts{Kind: kind, Name: "it", SessionID: "s", Hooks: true, Plugin: true})
		if (way == ByPlugin) != (got.Mail == "by its plugin") {
			t.Errorf("%s: mail %q, and the way is %s", kind, got.Mail, way)
		}
	}
	if got := OfferOf("somebody"); got != (Offer{}) {
		t.Errorf("an unknown kind: %+v", got)
	}
}
