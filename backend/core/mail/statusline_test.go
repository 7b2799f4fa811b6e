package mail

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestCHT_21_TheStatusLineCountsAndNamesAndQuotesNothing(t *testing.T) {
	from := func(names ...string) (waiting []Delivery) {
		for _, name := range names {
			d := Delivery{Message: bridge.Message{From: bridge.Address{Name: name, Agent: bridge.Claude}, ConversationID: "c", Body: "secret"}}
			switch name {
			case "owner":
				d.From = bridge.OwnerAddress()
			case "decision":
				d.From, d.ConversationID = bridge.OwnerAddress(), "decision-1"
			}
			waiting = append(waiting, d)
		}
		return waiting
	}
	tests := []struct {
		waiting []Delivery
		ended   bool
		want    string
	}{
		{nil, false, ""},
		{from("api"), false, "Bridge: 1 message from api"},
		{from("api", "api", "owner"), false, "Bridge: 3 messages from api, you"},
		{from("a", "b", "c"), false, "Bridge: 3 messages from a, b, c"},
		{from("a", "b", "c", "d", "e"), false, "Bridge: 5 messages from a, b, c and 2 more"},
		{from("decision"), false, "Bridge: new: 1 decision"},
		{from("api", "decision", "decision"), false, "Bridge: 1 message from api · new: 2 decisions"},
		{from("\x1b[2Jevil"), false, "Bridge: 1 message from another session"},
		{nil, true, "Bridge: its tools are gone: enter /mcp, choose bridge, then Reconnect"},
		{from("api"), true, "Bridge: 1 message from api · its tools are gone: enter /mcp, choose bridge, then Reconnect"},
	}
	for _, tt := range tests {
		if got := StatusLine(tt.waiting, tt.ended); got != tt.want {
			t.Errorf("%d waiting: %q, want %q", len(tt.waiting), got, tt.want)
		}
	}
}
