package server

import (
	"testing"

	"github.com/nats-io/nats.go"

	"bridge/backend/network/hub/subject"
)

// TestHUB_06_NobodyTakesBackWhatWasDecided: neither a PC, by whatever way, nor the hub's
// own key.
func TestHUB_06_NobodyTakesBackWhatWasDecided(t *testing.T) {
	h := openHub(t, nil)
	eve := h.join("eve")
	stream := subject.DecisionStream("crew")
	own := subject.Subject{Team: "crew", From: eve.identity.ID, Sort: subject.Decision}.String()
	if _, err := eve.js.Publish(t.Context(), own, []byte("decided")); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"STREAM.PURGE.", "STREAM.DELETE.", "STREAM.MSG.DELETE.", "STREAM.UPDATE.", "STREAM.SNAPSHOT.", "CONSUMER.CREATE."} {
		if err := eve.conn.Publish("$JS.API."+to+stream, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		eve.expect(h, "Publish Violation", to+stream)
	}
	for _, header := range []string{"Nats-Rollup", "Nats-TTL"} {
		value := map[string]string{"Nats-Rollup": "all", "Nats-TTL": "1s"}[header]
		if _, err := eve.js.PublishMsg(t.Context(), &nats.Msg{Subject: own, Data: []byte("instead"), Header: nats.Header{header: {value}}}); err == nil {
			t.Errorf("a decision with %s is taken", header)
		}
	}
	if _, err := eve.js.Publish(t.Context(), own, make([]byte, 65_537)); err == nil {
		t.Error("a decision of more than 64 KiB is taken")
	}
	kept, err := h.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Purge(t.Context()); err == nil {
		t.Error("the hub's own key can purge the decisions")
	}
	if err := kept.DeleteMsg(t.Context(), 1); err == nil {
		t.Error("the hub's own key can delete a decision")
	}
	if msg, err := kept.GetMsg(t.Context(), 1); err != nil || string(msg.Data) != "decided" {
		t.Errorf("what was decided: %v, %v", msg, err)
	}
}
