package cli

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/ipc/api"
)

// topics are the decisions in force of a broker, by topic.
type topics map[string]string

func (in topics) WithdrawDecision(_ context.Context, args api.WithdrawDecisionArgs) (api.DecideResult, error) {
	switch id := in[args.Topic]; {
	case args.Topic == "broken":
		return api.DecideResult{}, bridge.Errorf(bridge.Unavailable, "the broker has ended")
	case id == "":
		return api.DecideResult{}, bridge.Errorf(bridge.NotFound, "no decision on %q is in force", args.Topic)
	case args.Supersedes != "" && args.Supersedes != id:
		return api.DecideResult{}, bridge.Errorf(bridge.Conflict, "the decision on %q has changed", args.Topic)
	}
	delete(in, args.Topic)
	return api.DecideResult{Decision: decision.Revision{Topic: args.Topic}}, nil
}

// TestSEC_12_OnlyWhatWasListedIsWithdrawn: a topic that was decided anew since keeps its
// decision, and what was withdrawn before it broke off stays so.
func TestSEC_12_OnlyWhatWasListedIsWithdrawn(t *testing.T) {
	in := topics{"db": "d1", "editor": "newer", "last": "d5"}
	listed := []decision.Revision{{ID: "d1", Topic: "db"}, {ID: "d2", Topic: "editor"}, {ID: "d3", Topic: "gone"}, {ID: "d4", Topic: "broken"}, {ID: "d5", Topic: "last"}}
	var done withdrawnReport
	if err := withdrawEach(t.Context(), in, listed, &done); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("broken off: %v", err)
	}
	again := append(listed[1:3:3], listed[4])
	if err := withdrawEach(t.Context(), in, again, &done); err != nil {
		t.Errorf("run again: %v", err)
	}
	var withdrawn []string
	for _, rev := range done.Withdrawn {
		withdrawn = append(withdrawn, rev.Topic)
	}
	if diff := cmp.Diff([]string{"db", "last"}, withdrawn); diff != "" || in["editor"] != "newer" {
		t.Errorf("withdrawn, of which %v is left (-want +got):\n%s", in, diff)
	}
}
