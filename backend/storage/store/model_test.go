package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// model is what the store must be, kept in plain maps and slices.
type model struct {
	sent  []*modelRow // in the order of storing
	clock int64
}

type modelRow struct {
	mail.Delivery
	archived bool
}

func (m *model) of(id string) []*modelRow {
	return slices.DeleteFunc(slices.Clone(m.sent), func(r *modelRow) bool { return r.ID != id })
}

func (m *model) append(msgs []bridge.Message) (fresh bool, code bridge.Code) {
	if stored := m.of(msgs[0].ID); len(stored) > 0 {
		if stored[0].From.ID != msgs[0].From.ID || stored[0].Body != msgs[0].Body || stored[0].ReplyTo != msgs[0].ReplyTo {
			return false, bridge.Conflict
		}
		return false, ""
	}
	for _, msg := range msgs {
		m.sent = append(m.sent, &modelRow{Delivery: mail.Delivery{Message: msg}})
	}
	for _, row := range m.of(msgs[0].ReplyTo) {
		if row.Recipient == msgs[0].From.ID && row.Answered.At == 0 {
			row.Answered = mail.Fact{At: msgs[0].CreatedAt, Via: mail.ViaReply, Evidence: "reply " + msgs[0].ID}
		}
	}
	return true, ""
}

func (m *model) record(stage bridge.Stage, mark mail.Mark) {
	for _, row := range m.of(mark.MessageID) {
		if row.Recipient != mark.Recipient {
			continue
		}
		fact := map[bridge.Stage]*mail.Fact{bridge.StageWoken: &row.Woken, bridge.StageHanded: &row.Handed, bridge.StageConsumed: &row.Consumed}[stage]
		if fact.At == 0 {
			*fact = mail.Fact{At: mark.At, Via: mark.Via, Evidence: mark.Evidence}
			if stage == bridge.StageHanded {
				fact.Process = mark.Process
			}
			if stage == bridge.StageConsumed {
				row.ReadAt = mark.At
			}
		}
	}
}

func (m *model) expire(rule ExpireRule, now int64) {
	for _, row := range m.sent {
		switch {
		case row.archived:
		case row.ReadAt != 0:
			row.archived = row.CreatedAt < rule.TTLBefore && row.ReadAt < rule.TTLBefore
		case row.CreatedAt < rule.TTLBefore:
			row.archived, row.Expired = true, mail.Fact{At: now, Evidence: expiryWords[reasonTTL]}
		case row.CreatedAt < rule.QueuedBefore && !slices.Contains(rule.Live, row.Recipient):
			row.archived, row.Expired = true, mail.Fact{At: now, Evidence: expiryWords[reasonQueued]}
		}
	}
}

func (m *model) unread(recipient string) []mail.Delivery {
	list := []mail.Delivery{}
	for _, row := range m.sent {
		if row.Recipient == recipient && row.ReadAt == 0 && !row.archived {
			list = append(list, row.Delivery)
		}
	}
	return list
}

var modelPeers = []string{"ann", "bob", "cy"}

func TestStoreAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		w := &modelWorld{rt: rt, path: filepath.Join(dir, "bridge.db"), model: &model{clock: 1000}}
		w.open()
		defer func() { w.db.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": w.append, "record": w.record, "consume": w.consume, "expire": w.expire, "reopen": w.reopen, "": w.check,
		})
	})
}

// modelWorld drives the store and the model with the same operations.
type modelWorld struct {
	rt    *rapid.T
	path  string
	db    *DB
	model *model
}

func (w *modelWorld) open() {
	var err error
	if w.db, err = Open(context.Background(), w.path, testOptions()); err != nil {
		w.rt.Fatal(err)
	}
}

func (w *modelWorld) reopen(rt *rapid.T) {
	if err := w.db.Close(); err != nil {
		rt.Fatal(err)
	}
	w.open()
}

func (w *modelWorld) tick() int64 { w.model.clock++; return w.model.clock }

var modelID = rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint("m", rapid.IntRange(0, 12).Draw(rt, "id")) })

func (w *modelWorld) append(rt *rapid.T) {
	recipients := rapid.SliceOfNDistinct(rapid.SampledFrom(modelPeers), 1, 2, rapid.ID).Draw(rt, "recipients")
	msgs := note(modelID.Draw(rt, "id"), rapid.SampledFrom(modelPeers).Draw(rt, "from"), rapid.SampledFrom([]string{"x", "✓ y"}).Draw(rt, "body"), w.tick(), recipients...)
	if rapid.Bool().Draw(rt, "reply") {
		msgs = replyTo(msgs, modelID.Draw(rt, "to"))
	}
	fresh, code := w.model.append(msgs)
	if _, gotFresh, err := w.db.Append(context.Background(), msgs); gotFresh != fresh || bridge.CodeOf(err) != code {
		rt.Fatalf("Append = fresh %v, %v; want %v, %q", gotFresh, err, fresh, code)
	}
}

func (w *modelWorld) record(rt *rapid.T) {
	stage := rapid.SampledFrom([]bridge.Stage{bridge.StageWoken, bridge.StageHanded, bridge.StageConsumed}).Draw(rt, "stage")
	mark := mail.Mark{
		MessageID: modelID.Draw(rt, "id"), Recipient: rapid.SampledFrom(modelPeers).Draw(rt, "recipient"), At: w.tick(), Evidence: "e",
		Via:     rapid.SampledFrom([]mail.Via{"", mail.ViaHook, mail.ViaTool, mail.ViaChannel, mail.ViaQueue, mail.ViaQueueUnclear, mail.ViaMod}).Draw(rt, "via"),
		Process: rapid.SampledFrom([]string{"", "boot/1/7"}).Draw(rt, "process"),
	}
	w.model.record(stage, mark)
	if err := w.db.Record(context.Background(), stage, []mail.Mark{mark}); err != nil {
		rt.Fatal(err)
	}
}

func (w *modelWorld) consume(rt *rapid.T) {
	recipient, upTo, at := rapid.SampledFrom(modelPeers).Draw(rt, "recipient"), w.model.clock-int64(rapid.IntRange(0, 5).Draw(rt, "ago")), w.tick()
	want := []mail.Mark{}
	for _, d := range w.model.unread(recipient) {
		if d.Handed.At != 0 && d.Handed.At <= upTo && (d.Handed.Via == "" || d.Handed.Via == mail.ViaHook || d.Handed.Via == mail.ViaTool) {
			want = append(want, mail.Mark{MessageID: d.ID, Recipient: recipient, At: at, Via: mail.ViaActivity, Evidence: "next"})
		}
	}
	for _, mark := range want {
		w.model.record(bridge.StageConsumed, mark)
	}
	got, err := w.db.ConsumeHandedOver(context.Background(), recipient, upTo, at, "next", none)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		rt.Fatalf("ConsumeHandedOver: %v (-want +got):\n%s", err, diff)
	}
}

func (w *modelWorld) expire(rt *rapid.T) {
	ago := func(name string) int64 { return w.model.clock - int64(rapid.IntRange(0, 30).Draw(rt, name)) }
	rule := ExpireRule{TTLBefore: ago("ttl"), QueuedBefore: ago("queued"), Live: rapid.SliceOfDistinct(rapid.SampledFrom(modelPeers), rapid.ID).Draw(rt, "live"), Limit: 1000}
	w.model.expire(rule, testTime.UnixMilli())
	if _, err := w.db.Expire(context.Background(), rule); err != nil {
		rt.Fatal(err)
	}
}

// check compares everything that can be asked.
func (w *modelWorld) check(rt *rapid.T) {
	ctx := context.Background()
	counts := map[string]int{}
	for _, peer := range modelPeers {
		want := w.model.unread(peer)
		if len(want) > 0 {
			counts[peer] = len(want)
		}
		if got, err := w.db.Unread(ctx, peer, 100, nil); err != nil || !cmp.Equal(want, got) {
			rt.Fatalf("Unread(%s): %v (-want +got):\n%s", peer, err, cmp.Diff(want, got))
		}
		talk := map[string]bool{}
		for _, row := range w.model.sent {
			if row.From.ID == peer || row.Recipient == peer {
				talk[row.ID] = true
			}
		}
		got, err := w.db.Conversation(ctx, peer, 0, 100)
		if err != nil || len(got) != len(talk) {
			rt.Fatalf("Conversation(%s) = %v, %v; want %v", peer, ids(got), err, talk)
		}
	}
	if got, err := w.db.UnreadCounts(ctx); err != nil || !cmp.Equal(counts, got) {
		rt.Fatalf("UnreadCounts = %v, %v; want %v", got, err, counts)
	}
	recent, err := w.db.Recent(ctx, 100)
	if err != nil {
		rt.Fatal(err)
	}
	seen := 0
	for _, row := range recent {
		want := map[string]mail.Delivery{}
		for _, d := range w.model.of(row.ID) {
			want[d.Recipient] = d.Delivery
		}
		got := map[string]mail.Delivery{}
		for _, d := range row.Deliveries {
			got[d.Recipient] = d
			seen++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s (-want +got):\n%s", row.ID, diff)
		}
	}
	if seen != len(w.model.sent) {
		rt.Fatalf("Recent has %d deliveries, want %d", seen, len(w.model.sent))
	}
}
