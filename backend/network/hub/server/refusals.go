package server

import (
	"context"
	"encoding/json"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"bridge/backend/network/hub/subject"
)

// refusal is something that the engine, or the hub, refused a PC.
type refusal struct{ pc, why string }

// refusals queues refusals for counting. If it is full, they are dropped: the PC is named already.
type refusals chan refusal

func (r refusals) note(pc, why string) {
	select {
	case r <- refusal{pc, why}:
	default:
	}
}

// refusedBy returns the reason for which the engine refused something; "" if it did not.
func refusedBy(line string) string {
	line = strings.ToLower(line)
	switch {
	case strings.Contains(line, "publish violation"), strings.Contains(line, "subscription violation"):
		return subject.RefusedForbidden
	case strings.Contains(line, "maximum payload exceeded"):
		return subject.RefusedTooLarge
	}
	return ""
}

// countRefusals publishes to every node, and so to the team, what a PC was refused here:
// at the first, second, fourth refusal and so on.
func countRefusals(ctx context.Context, s *Server) {
	counts := map[refusal]int64{}
	for {
		select {
		case refusal := <-s.refusals:
			if counts[refusal]++; bits.OnesCount64(uint64(counts[refusal])) != 1 {
				continue
			}
			if err := sendRefusal(s, refusal, counts[refusal]); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("the team could not be told what a PC was refused", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func sendRefusal(s *Server, item refusal, count int64) error {
	now := s.opts.Now()
	body, err := json.Marshal(subject.Refusal{Why: item.why, Count: count, Last: now.UnixMilli()})
	if err != nil {
		return err
	}
	at := subject.Refused(s.opts.Settings.Team, s.opts.Settings.Node, item.pc)
	data, err := subject.Seal(s.keys.identity.Sign, at, now.UnixNano(), body)
	if err != nil {
		return err
	}
	return s.conn.Publish(at, data)
}

// numbered is what a node last reported for one reason.
type numbered struct {
	subject.Refusal

	number int64
}

// hearRefused records what any node, including this one, has refused a PC.
func (b *presenceTable) hearRefused(node, pc string, msg *nats.Msg) {
	var refusal numbered
	body, number, err := subject.Open(b.ID(), msg.Subject, msg.Data)
	if err == nil {
		err = json.Unmarshal(body, &refusal.Refusal)
	}
	known := b.refused[pc]
	if err != nil || number <= known[node+" "+refusal.Why].number {
		return // not sealed by a node, or not new
	}
	if known == nil {
		known = map[string]numbered{}
		b.refused[pc] = known
	}
	refusal.number = number
	known[node+" "+refusal.Why] = refusal
	sums := map[string]subject.Refusal{}
	for _, each := range known {
		sum := sums[each.Why]
		sums[each.Why] = subject.Refusal{Why: each.Why, Count: sum.Count + each.Count, Last: max(sum.Last, each.Last)}
	}
	b.line(pc).Refusals = slices.SortedFunc(maps.Values(sums), func(a, b subject.Refusal) int { return strings.Compare(a.Why, b.Why) })
	b.changed[pc] = true
}
