package mail

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// to is a delivery that has gone as far as these stages.
func to(recipient string, stage ...bridge.Stage) Delivery {
	d := Delivery{Message: bridge.Message{Recipient: recipient}}
	for _, s := range stage {
		switch s {
		case bridge.StageWoken:
			d.Woken.At = 1
		case bridge.StageHanded:
			d.Handed.At = 1
		case bridge.StageConsumed:
			d.ReadAt = 1
		case bridge.StageExpired:
			d.Expired.At = 1
		default:
			panic("no such stage: " + s)
		}
	}
	return d
}

// ago is a time before noon, Unix epoch milliseconds.
func ago(d time.Duration) int64 { return noon.Add(-d).UnixMilli() }

// row is a message of that age.
func row(id string, at time.Duration, deliveries ...Delivery) HistoryRow {
	return HistoryRow{ID: id, ConversationID: id, CreatedAt: ago(at), Deliveries: deliveries}
}

func TestDSK_02_MailThatIsUnreadForTooLong(t *testing.T) {
	notice := row("notice", time.Hour, to("one"))
	notice.Hop, notice.ConversationID = 100, "decision-d1"
	answer := notice
	answer.ID, answer.ReplyTo = "answer", "notice"
	borrowed := notice
	borrowed.ID, borrowed.Hop = "borrowed", 3
	other := notice
	other.ID, other.ConversationID = "other", "c"

	for _, tt := range []struct {
		name string
		rows []HistoryRow
		want []Overdue
	}{
		{"nothing", nil, []Overdue{}},
		{"14 min 59.999 s", []HistoryRow{row("m", 15*time.Minute-time.Millisecond, to("one"))}, []Overdue{}},
		{"15 min", []HistoryRow{row("m", 15*time.Minute, to("one"))}, []Overdue{{"one", 1, "m", ago(15 * time.Minute)}}},
		{"two of one time: the first of the list", []HistoryRow{row("m", time.Hour, to("one")), row("n", time.Hour, to("one"))}, []Overdue{{"one", 2, "m", ago(time.Hour)}}},
		{"sent later than now", []HistoryRow{row("m", -time.Hour, to("one"))}, []Overdue{}},
		{"of whatever stage", []HistoryRow{row(
			"m", time.Hour, to("stored"), to("woken", bridge.StageWoken), to("handed", bridge.StageHanded),
			to("read", bridge.StageConsumed), to("expired", bridge.StageExpired),
		)}, []Overdue{{"stored", 1, "m", ago(time.Hour)}, {"woken", 1, "m", ago(time.Hour)}}},
		{"one entry a session, who waits longest first", []HistoryRow{
			row("m4", time.Minute, to("one")), row("m3", 16*time.Minute, to("one")),
			row("m2", 20*time.Minute, to("one"), to("two")), row("m1", 30*time.Minute, to("two")),
		}, []Overdue{{"two", 2, "m1", ago(30 * time.Minute)}, {"one", 2, "m2", ago(20 * time.Minute)}}},
		{"whatever the order", []HistoryRow{
			row("m1", 20*time.Minute, to("one")), row("m2", 30*time.Minute, to("two")), row("m3", 25*time.Minute, to("one")),
		}, []Overdue{{"two", 1, "m2", ago(30 * time.Minute)}, {"one", 2, "m3", ago(25 * time.Minute)}}},
		{"the notice of a decision waits by design", []HistoryRow{notice}, []Overdue{}},
		{"an answer to one does not", []HistoryRow{answer}, []Overdue{{"one", 1, "answer", ago(time.Hour)}}},
		{"nor what borrowed its conversation", []HistoryRow{borrowed}, []Overdue{{"one", 1, "borrowed", ago(time.Hour)}}},
		{"nor what went as far elsewhere", []HistoryRow{other}, []Overdue{{"one", 1, "other", ago(time.Hour)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, FindOverdue(tt.rows, noon)); diff != "" {
				t.Errorf("overdue (-want +got):\n%s", diff)
			}
		})
	}
}
