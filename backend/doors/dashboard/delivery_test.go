package dashboard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/platform/ipc/api"
)

// at gives milliseconds of the test's day.
func at(hour, minute int) int64 {
	return time.Date(2026, 3, 4, hour, minute, 0, 0, time.UTC).UnixMilli()
}

// sampleDelivery is a message written at 14:00 to a claude session.
func sampleDelivery(change func(*deliveryView)) deliveryView {
	d := deliveryView{
		Delivery: mail.Delivery{Message: bridge.Message{
			ID: "m", Recipient: "p", From: bridge.Address{ID: "s", Name: "codex-api", Agent: bridge.Codex},
			To: "claude-app", ConversationID: "m", CreatedAt: at(14, 0),
		}},
		recipient: recipient{name: "claude-app", agent: bridge.Claude, live: &api.Peer{
			ID: "p", Name: "claude-app", Agent: bridge.Claude, State: "idle", AutoWake: true,
		}},
		maxHops: 6, broker: true, zone: time.UTC,
	}
	if change != nil {
		change(&d)
	}
	return d
}

// limited is an idle session that mail of agents has just woken, and then change.
func limited(change func(*deliveryView)) func(*deliveryView) {
	return func(d *deliveryView) {
		d.recipient.live.WokenAt, d.recipient.live.NextWake, d.recipient.live.Wake = at(14, 1), at(14, 2), delivery.WakeOpen
		if change != nil {
			change(d)
		}
	}
}

func fact(hour, minute int) mail.Fact { return mail.Fact{At: at(hour, minute), Evidence: "hook Stop"} }

func TestTheNoteSaysThePresentTruth(t *testing.T) {
	tests := []struct {
		name   string
		change func(*deliveryView)
		want   string
	}{
		{"idle", nil, "waiting for its next turn"},
		{"busy", func(d *deliveryView) { d.recipient.live.State = "busy" }, "waiting for its next safe step"},
		{"away", func(d *deliveryView) { d.recipient.live = nil }, "waiting for the session to come back"},
		{"no broker", func(d *deliveryView) { d.broker, d.recipient.live = false, nil }, "waiting for a broker to run"},
		{"QUI-03 woken just before", limited(nil), "waits: claude-app was woken 14:01; next wake 14:02"},
		{"QUI-03 it is busy", limited(func(d *deliveryView) { d.recipient.live.State = "busy" }), "waiting for its next safe step"},
		{"QUI-03 nothing can wake it", limited(func(d *deliveryView) { d.recipient.live.Wake = delivery.WakeNone }), "waiting for its next turn"},
		{"QUI-03 mail that wakes nobody", limited(func(d *deliveryView) { d.ConversationID = "c:note" }), "waiting for its next turn"},
		{"QUI-03 the owner's words", limited(func(d *deliveryView) { d.From = bridge.OwnerAddress() }), "waiting for its next turn"},
		{"woken", func(d *deliveryView) { d.Woken = fact(14, 1) }, "woken 14:01, waiting for its turn to begin"},
		{"woken and busy", func(d *deliveryView) { d.Woken, d.recipient.live.State = fact(14, 1), "busy" }, "waiting for its next safe step"},
		{"handed", func(d *deliveryView) { d.Handed = fact(14, 1) }, "handed over, waiting for a sign of activity"},
		{"consumed", func(d *deliveryView) { d.Consumed = fact(14, 2) }, "read 14:02"},
		{"consumed the next day", func(d *deliveryView) { d.Consumed.At = at(38, 2) }, "read 5 Mar 14:02"},
		{"read before stages were kept", func(d *deliveryView) { d.ReadAt = at(14, 2) }, "read 14:02"},
		{"answered", func(d *deliveryView) { d.Consumed, d.Answered = fact(14, 2), fact(14, 5) }, "answered 14:05"},
		{"expired", func(d *deliveryView) { d.Expired.At = at(38, 0) }, "expired after 24 h"},
		{"expired after a week", func(d *deliveryView) { d.Expired.At = at(14+7*24, 0) }, "expired after 7 d"},
		{"expired after being handed", func(d *deliveryView) { d.Handed, d.Expired.At = fact(14, 1), at(38, 0) }, "expired after 24 h"},
		{"for another PC", func(d *deliveryView) { d.Remote.Host, d.recipient.live = "desk", nil }, "waiting for desk"},
		{"there", func(d *deliveryView) { d.Remote = mail.Crossing{Host: "desk", Arrived: fact(14, 1)} }, "on desk since 14:01"},
		{"refused there", func(d *deliveryView) {
			d.Remote = mail.Crossing{Host: "desk", Refused: mail.Fact{At: at(14, 1), Evidence: "messages of laptop are not allowed here"}}
		}, "desk refused it: messages of laptop are not allowed here"},
		{"another zone", func(d *deliveryView) { d.Consumed, d.zone = fact(14, 2), time.FixedZone("", 2*3600) }, "read 16:02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sampleDelivery(tt.change).note(); got != tt.want {
				t.Errorf("note() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheStripTellsWhatWillNotHappen(t *testing.T) {
	const (
		accepted = iota
		durable
		woken
		handed
		consumed
		answered
	)
	tests := []struct {
		name   string
		change func(*deliveryView)
		done   []int
		never  []int
	}{
		{"fresh", nil, []int{accepted, durable}, nil},
		{"woken", func(d *deliveryView) { d.Woken = fact(14, 1) }, []int{accepted, durable, woken}, nil},
		{"read at a safe step", func(d *deliveryView) { d.Handed, d.Consumed = fact(14, 1), fact(14, 2) }, []int{accepted, durable, handed, consumed}, []int{woken}},
		{"taken by a tool", func(d *deliveryView) { d.Consumed = fact(14, 2) }, []int{accepted, durable, consumed}, []int{woken, handed}},
		{"expired", func(d *deliveryView) { d.Expired = fact(15, 0) }, []int{accepted, durable}, []int{woken, handed, consumed, answered}},
		{"refused there", func(d *deliveryView) { d.Remote = mail.Crossing{Host: "desk", Refused: fact(14, 1)} }, []int{accepted, durable}, []int{woken, handed, consumed, answered}},
		{"there", func(d *deliveryView) {
			d.Remote, d.recipient.live = mail.Crossing{Host: "desk", Arrived: fact(14, 1)}, nil
		}, []int{accepted, durable}, nil},
		{"a decision", func(d *deliveryView) { d.Hop, d.ConversationID = 100, "decision-1" }, []int{accepted, durable}, []int{woken}},
		{"at the hop limit", func(d *deliveryView) { d.Hop = 6 }, []int{accepted, durable}, []int{woken}},
		{"below the hop limit", func(d *deliveryView) { d.Hop = 5 }, []int{accepted, durable}, nil},
		{"a higher limit", func(d *deliveryView) { d.Hop, d.maxHops = 6, 7 }, []int{accepted, durable}, nil},
		{"auto-wake off", func(d *deliveryView) { d.recipient.live.AutoWake = false }, []int{accepted, durable}, []int{woken}},
		{"auto-wake off, direct on", func(d *deliveryView) { d.recipient.live.AutoWake, d.recipient.live.WakeOnDirect = false, true }, []int{accepted, durable}, nil},
		{"auto-wake off, to all", func(d *deliveryView) {
			d.To, d.recipient.live.AutoWake, d.recipient.live.WakeOnDirect = "*", false, true
		}, []int{accepted, durable}, []int{woken}},
		{"the owner, auto-wake off", func(d *deliveryView) { d.From, d.recipient.live.AutoWake = bridge.OwnerAddress(), false }, []int{accepted, durable}, nil},
		{"antigravity", func(d *deliveryView) { d.recipient.agent = bridge.Antigravity }, []int{accepted, durable}, []int{woken}},
		{"away", func(d *deliveryView) { d.recipient.live = nil }, []int{accepted, durable}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var done, never []int
			steps := sampleDelivery(tt.change).steps()
			for i, step := range steps {
				if step.Stage != bridge.Stages()[i] {
					t.Errorf("step %d is %s, want %s", i, step.Stage, bridge.Stages()[i])
				}
				if step.At != nil {
					done = append(done, i)
				}
				if !step.Possible {
					never = append(never, i)
				}
				if (step.At != nil || !step.Possible) && step.Evidence == "" {
					t.Errorf("step %s has no evidence", step.Stage)
				}
			}
			if diff := cmp.Diff(tt.done, done); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.never, never); diff != "" {
				t.Errorf("not possible (-want +got):\n%s", diff)
			}
		})
	}
}
