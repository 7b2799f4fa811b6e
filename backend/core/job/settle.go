package job

import "time"

// Settle ends in a file that was brought back from a copy what it tells as going on,
// or as standing in line: nothing of it runs, and nothing of it may begin by itself,
// for it may have been done since the copy was made. Each can be continued. What a
// run came to is asked of result; one without is interrupted. Jobs on paired PCs are
// theirs to tell of. It reports whether anything changed.
func (f *File) Settle(at time.Time, result func(name string, run int) (Outcome, bool)) (changed bool) {
	for i := range f.Jobs {
		j := &f.Jobs[i]
		if j.Remote != nil || j.State.IsEnded() {
			continue
		}
		transition := Transition{name: "interrupt", from: []State{Queued}, to: Interrupted, apply: func(j *Job) {
			j.FinishedAt, j.Ended = MillisOf(at), EndedRunnerGone
			j.ResultSent = j.ResultSent || j.Run == 0 // there is nothing to be sent
		}}
		if j.State.IsActive() {
			transition = Lose(j.Run, at)
			if outcome, has := result(j.Name, j.Run); has {
				transition = End(j.Run, outcome, at)
			}
		}
		changed = transition.carryOut(j) == nil || changed
	}
	return changed
}
