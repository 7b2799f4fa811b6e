package acp

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/job"
)

// authRequired is the protocol's code for an agent that wants to be logged in.
const authRequired = -32000

// ended is the answer to a prompt.
type ended struct {
	Reason string `json:"stopReason"`
	Usage  *struct {
		Input      int64 `json:"inputTokens"`
		Output     int64 `json:"outputTokens"`
		CacheRead  int64 `json:"cachedReadTokens"`
		CacheWrite int64 `json:"cachedWriteTokens"`
	} `json:"usage"`
}

// handleTurnEnd takes in the end of the turn that runs.
func (a *agent) handleTurnEnd(said line) {
	a.works()
	var result ended
	json.Unmarshal(said.Result, &result) //nolint:errcheck // an end without a reason is a failure
	if u := result.Usage; u != nil {
		a.usage.Input += u.Input
		a.usage.Output += u.Output
		a.usage.CacheRead += u.CacheRead
		a.usage.CacheWrite += u.CacheWrite
		a.Put(a.usage)
	}
	words := a.speak()
	a.mu.Lock()
	stopped, left, denied := a.stopped, a.left, len(a.denied) > 0
	a.open, a.denied = map[string][]option{}, map[string]bool{}
	a.mu.Unlock()
	for step, question := range a.questions {
		delete(a.questions, step)
		a.Resolved(question)
	}
	a.WithdrawAll()
	clear(a.steps)
	end := told(a.judge(said.Error, result.Reason, words), stopped, left, denied)
	a.EndTurn(end, !a.Waiting())
	a.change(func() { a.running, a.prompt = "", "" })
}

// told returns how a turn ended, given whether it was stopped, left its mode, or had a step
// denied. Agents report such an end differently: some as cancelled, some without a reason.
func told(end job.TurnEnded, stopped, left, denied bool) job.TurnEnded {
	silent := end.Why == job.EndEmpty
	switch {
	case left:
		return job.TurnEnded{Why: job.EndDenied, Message: "the agent left the mode in which it asks before each change, so it was stopped"}
	case stopped && silent: // the refusal of its open question was quicker than the stop
		end.Why = job.EndInterrupted
	case denied && !stopped && (silent || end.Why == job.EndInterrupted):
		end.Why, end.Message = job.EndDenied, "the agent stopped at a refusal"
	}
	return end
}

// judge says how a turn ended. An answer without words is none.
func (a *agent) judge(failed *run.Refusal, reason, words string) job.TurnEnded {
	if failed != nil {
		end := job.TurnEnded{Message: failed.Message}
		end.Why, end.Status = why(*failed)
		if details := run.Text(run.Member(failed.Data, "details")); details != "" {
			end.Message += ": " + details
		}
		if end.Why == job.EndLimit {
			end.Until = until(*failed)
		}
		return end
	}
	switch reason {
	case "cancelled":
		return job.TurnEnded{Why: job.EndInterrupted}
	case "refusal":
		return job.TurnEnded{Why: job.EndRefusal, Message: first(strings.TrimSpace(words), "the model refused")}
	case "max_tokens":
		return job.TurnEnded{Why: job.EndLength, Text: words}
	case "max_turn_requests":
		return job.TurnEnded{Why: job.EndFailed, Message: "the agent made as many requests as it may in one turn"}
	case "end_turn":
		if strings.TrimSpace(words) == "" {
			return job.TurnEnded{Why: job.EndEmpty}
		}
		return job.TurnEnded{Why: job.EndAnswer, Text: words}
	}
	return job.TurnEnded{Why: job.EndFailed, Message: "the agent ended its turn with " + strconv.Quote(reason) + ", which the protocol does not know"}
}

// until is when a limit is over, where the agent passes it on.
func until(failed run.Refusal) time.Time {
	var seconds int64
	if json.Unmarshal(run.Member(failed.Data, "resetsAt"), &seconds) != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// why judges an error, first by the protocol's own code.
func why(failed run.Refusal) (job.EndReason, int) {
	if failed.Code == authRequired {
		return job.EndAuth, 0
	}
	return run.ClassifyError(failed)
}
