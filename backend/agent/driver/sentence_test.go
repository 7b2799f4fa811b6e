package driver_test

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// Whatever goes wrong with an agent's provider, its supervisor reads what it was, and
// nothing that went wrong is called an answer.
func TestJOB_15_WhatASupervisorReadsOfAFailure(t *testing.T) {
	want := map[drivertest.Fault]struct {
		state job.State
		words string
	}{
		drivertest.Unauthorized: {job.Failed, "-job-0a1b2c3d has failed: the provider does not accept the account: nobody is logged in"},
		drivertest.UsageLimit:   {job.Limit, "-job-0a1b2c3d was stopped by a usage limit"},
		drivertest.ServerError:  {job.Failed, "-job-0a1b2c3d has failed: the provider failed."},
		drivertest.Refusal:      {job.Refused, "-job-0a1b2c3d was refused."},
		drivertest.Empty:        {job.Failed, "-job-0a1b2c3d has failed: it ended without an answer."},
		drivertest.Context:      {job.Failed, "-job-0a1b2c3d has failed: the conversation does not fit into the model any more."},
		drivertest.Lost:         {job.Failed, "-job-0a1b2c3d has failed: the agent's program ended in the middle."},
	}
	benches := map[bridge.AgentKind]func(t *testing.T) drivertest.Bench{bridge.Antigravity: newAgyStage}
	for _, kind := range kinds {
		benches[kind] = newStage(kind)
	}
	for kind, bench := range benches {
		for fault, want := range want {
			t.Run(string(kind)+" "+string(fault), func(t *testing.T) {
				b := bench(t)
				b.Script("fault", drivertest.Step{Fault: fault})
				j := drivertest.Begin(t, b, "fault")
				end := drivertest.Until[job.TurnEnded](j, nil)
				outcome := job.OutcomeOf(end, false)
				envelope := runs.NewEnvelope(j.Spec.Job, 1, outcome, end.Text, runs.Evidence{}, time.Now())
				envelope.Error = end.Message
				body := envelope.Body("file")
				if outcome.State != want.state || !strings.HasPrefix(body, string(kind)+want.words) || strings.Contains(body, "\n") || len(body) > 300 {
					t.Errorf("%s, and its supervisor reads %q, want %s and %q", outcome.State, body, want.state, want.words)
				}
			})
		}
	}
}
