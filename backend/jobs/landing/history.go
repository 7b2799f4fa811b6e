package landing

import (
	"slices"

	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
)

// history returns all finishes of a job, oldest first.
func history(last *job.Landing) []job.Finish {
	if last == nil {
		return nil
	}
	return append(slices.Clone(last.Earlier), last.Finish)
}

// standing returns the finish that an undo would take back, or nil if there is none. A finish
// that failed does not count, and neither does an undo that was interrupted.
func standing(last *job.Landing) *job.Finish {
	for _, landing := range slices.Backward(history(last)) {
		isUndo := landing.Action == string(gitwork.Undo)
		landedNone := landing.Target != "" && landing.Next == landing.Target
		switch {
		case landing.State == job.LandingFailed, isUndo && landing.State != job.LandingDone:
		case isUndo, landedNone, landing.Action == string(gitwork.Keep), landing.State == job.LandingBegun:
			return nil
		default:
			return &landing
		}
	}
	return nil
}

// undoneMerge returns the main checkout's commit before the first of a job's merges that were
// undone since its last landing that was not, or "".
func undoneMerge(last *job.Landing) (before string) {
	undone := false
	for _, landing := range slices.Backward(history(last)) {
		isUndo := landing.Action == string(gitwork.Undo)
		if landing.State == job.LandingStaged && !isUndo {
			undone = false
		}
		if landing.State != job.LandingDone {
			continue
		}
		switch gitwork.Action(landing.Action) {
		case gitwork.Undo:
			undone = true
		case gitwork.Keep, gitwork.Discard:
			undone = false
		default:
			if !undone {
				return before
			}
			if undone = false; landing.Action == string(gitwork.Merge) {
				before = landing.Target
			}
		}
	}
	return before
}
