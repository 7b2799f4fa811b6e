package job

import "time"

// Settle ends the active and queued jobs in a file that was restored from a copy. None
// of them runs, and none may begin automatically, because it may have run since the
// copy. Each can be continued. result returns the outcome of a run; a run without one
// is interrupted. It skips jobs on paired PCs. It reports whether anything changed.
func (f *File) Settle(at time.Time, result func(name string, run int) (Outcome, bool)) (changed bool) {
	for i := range f.Jobs {
		j := &f.Jobs[i]
		if j.Remote != nil || j.State.IsEnded() {
			continue
		}
		transition := Transition{name: "interrupt", from: []State{Queued}, to: Interrupted, apply: func(j *Job) {
			j.FinishedAt, j.Ended = MillisOf(at), EndedRunnerGone
			j.ResultSent = j.ResultSent || j.Run == 0 // there is no result to send
		}}
		if j.State.IsActive() {
			transition = Lose(j.Run, at, false)
			if outcome, has := result(j.Name, j.Run); has {
				transition = End(j.Run, outcome, at)
			}
		}
		changed = transition.carryOut(j) == nil || changed
	}
	return changed
}
