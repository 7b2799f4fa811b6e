package remotejobs

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/jobs/landing"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// Jobs is the part of this PC's jobs that the executor uses.
type Jobs interface {
	// Take records a job. It fails with Conflict if its name is taken.
	Take(ctx context.Context, request job.Request, name string, caller job.Caller, worktrees string) (job.Job, error)
	Find(name string) (job.Job, error)
	All() []job.Job
	View(name string) (api.JobView, error)
	// Result returns the result of a run that has ended.
	Result(entry job.Job, run int) (runs.Envelope, error)
	EncodedResult(entry job.Job, run int) ([]byte, error)
	Approvals() []job.Approval
	Approval(id string) (job.Approval, error)
	AnswerAs(address bridge.Address, id string, decision job.Decision, reason string) error
	Say(id string, control job.Control) (api.JobMessaged, error)
	Cancel(name string) (api.JobStatus, error)
	ReadLog(name string, from int64) (jobfiles.Log, error)
	Diff(ctx context.Context, name string) (landing.Diff, error)
}

// Owned serves the jobs of this PC to their owners on paired PCs. Each owner sees and steers
// only the jobs that it requested. The caller has verified the owner and its permission.
type Owned struct {
	Jobs Jobs
	Git  *gitwork.Git // nil if this PC has no git
	Now  func() time.Time

	reading *wholes
}

// Asked is a job that a paired PC requests.
type Asked struct {
	Name    string
	Request job.Request
	Owner   remote.Peer
	// Allow checks folders that the job would use, in the order of their use. No folder
	// is used before its check.
	Allow func([]remote.Place) error
}

// maxPaired limits the running jobs of paired PCs (RMT-14).
const maxPaired = 200

// settleDelay is how often the arrival of an answer is polled.
const settleDelay = 50 * time.Millisecond

// Spawn records a job for a paired PC. A repeated request of the same owner returns nil.
// It fails with Conflict if another owner has that name (RMT-13).
func (o Owned) Spawn(ctx context.Context, call Asked) error {
	if present, err := o.Jobs.Find(call.Name); err == nil {
		if isOf(present, call.Owner) {
			return nil
		}
		return bridge.Errorf(bridge.Conflict, "there is a job named %s here already", call.Name)
	}
	if err := o.checkOwner(call); err != nil {
		return err
	}
	folder, err := o.hold(&call)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	worktrees, err := o.allowRepository(ctx, call)
	if err != nil {
		return err
	}
	if err := checkPath(folder, call.Request.Cwd); err != nil {
		return err
	}
	caller := job.Caller{Name: call.Owner.Name + "/" + call.Owner.Supervisor, ID: call.Owner.Owner(), PC: call.Owner.ID}
	_, err = o.Jobs.Take(ctx, call.Request, call.Name, caller, worktrees)
	if bridge.CodeOf(err) != bridge.Conflict {
		return err
	}
	if present, findErr := o.Jobs.Find(call.Name); findErr == nil && isOf(present, call.Owner) {
		return nil // the same request came at the same time
	}
	return err
}

func isOf(entry job.Job, owner remote.Peer) bool {
	return entry.PC == owner.ID && entry.Supervisor == owner.Owner()
}

// checkOwner fails with Denied for the session of anything but a job of that owner (RMT-11).
// It fails with Busy if too many jobs run.
func (o Owned) checkOwner(call Asked) error {
	going, own := 0, call.Request.SessionID == ""
	for _, entry := range o.Jobs.All() {
		if entry.PC != "" && !entry.State.IsEnded() {
			going++
		}
		own = own || isOf(entry, call.Owner) && entry.SessionID == call.Request.SessionID && entry.Agent == call.Request.Kind
	}
	switch {
	case !own:
		return bridge.Errorf(bridge.Denied, "session_id can only be that of one of your own jobs on this PC")
	case going >= maxPaired:
		return bridge.Errorf(bridge.Busy, "%d jobs of paired PCs go on here, which is the most", maxPaired)
	}
	return nil
}

// hold checks the folder, opens it, and sets its canonical name in the request.
func (o Owned) hold(call *Asked) (*os.Root, error) {
	requestedPath := call.Request.Cwd
	canonical, err := disk.Canonical(requestedPath)
	if err != nil {
		canonical = "" // outside every folder: the error does not reveal whether it exists
	}
	if err := call.Allow([]remote.Place{{What: "the folder", Given: requestedPath, Canonical: canonical}}); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(canonical); err != nil || !info.IsDir() {
		return nil, bridge.Errorf(bridge.NotFound, "cwd %s is no folder", requestedPath)
	}
	folder, err := os.OpenRoot(canonical)
	if err != nil {
		return nil, bridge.Errorf(bridge.NotFound, "cwd %s cannot be opened: %s", requestedPath, disk.Reason(err))
	}
	call.Request.Cwd = canonical
	if err := checkPath(folder, canonical); err != nil {
		_ = folder.Close()
		return nil, err
	}
	return folder, nil
}

// checkPath fails with Denied if a canonical name no longer leads to the open folder, or
// leads there only by a link.
func checkPath(folder *os.Root, canonical string) error {
	held, err := folder.Stat(".")
	if err == nil {
		var info os.FileInfo
		info, err = os.Lstat(canonical)
		resolved, canonicalErr := disk.Canonical(canonical)
		if err == nil && canonicalErr == nil && resolved == canonical && os.SameFile(held, info) {
			return nil
		}
	}
	return bridge.Errorf(bridge.Denied, "the folder was changed for another one while it was looked at: nothing was started")
}

// allowRepository checks everything that a worktree job uses besides its folder. It
// returns the folder for the checkout, within the repository, so that the checkout is
// where the repository is.
func (o Owned) allowRepository(ctx context.Context, call Asked) (worktrees string, err error) {
	if !call.Request.Worktree {
		return "", nil
	}
	if o.Git == nil {
		return "", bridge.Errorf(bridge.Unavailable, "git is not on this PC: there can be no worktree")
	}
	repository, err := o.Git.Repository(ctx, call.Request.Cwd)
	if err != nil {
		return "", err
	}
	worktrees = filepath.Join(repository.Main, "worktrees")
	path, _, err := repository.WorktreePath(call.Name, worktrees)
	if err != nil {
		path = "" // a broken link: its target is unknown
	}
	var places []remote.Place
	for _, row := range []struct{ what, path string }{
		{"its checkout", repository.Top},
		{"its repository", repository.Main},
		{"its git directory", repository.Dir},
		{"its repository's git directory", repository.Common},
	} {
		places = append(places, remote.Place{What: row.what, Given: row.path, Canonical: row.path})
	}
	places = append(places, remote.Place{What: "the new checkout", Given: worktrees, Canonical: path})
	return worktrees, call.Allow(places)
}

// Job returns a job of that owner. It fails with NotFound for every other name, whether
// such a job exists or not.
func (o Owned) Job(name string, owner remote.Peer) (job.Job, error) {
	entry, err := o.Jobs.Find(name)
	if err != nil || !isOf(entry, owner) {
		return job.Job{}, bridge.Errorf(bridge.NotFound, "you have no job named %q here", name)
	}
	return entry, nil
}

// State returns the state of a job for its owner. It fails with NotFound if owner has no such
// job here.
func (o Owned) State(name string, owner remote.Peer) (remote.Value, error) {
	entry, err := o.Job(name, owner)
	if err != nil {
		return remote.Value{}, err
	}
	view, err := o.Jobs.View(name)
	if err != nil {
		return remote.Value{}, err
	}
	state := remote.JobState{
		Job: name, Status: view.Status, Title: view.Title, Model: view.Model, Effort: view.Effort, Access: string(view.Access),
		Layer: view.Layer, Step: view.Step, Workdir: view.Workdir, Branch: view.Branch, Session: view.Session, Tokens: view.Tokens,
		CostUSD: view.CostUSD, Percent: view.Progress.Percent, ETA: int64(entry.ETAAt), Note: view.Progress.Note, Wait: view.Wait,
		Started: view.StartedAt, EndedAt: view.EndedAt, Until: int64(entry.LimitUntil), Ended: view.Ended, Run: entry.Run, Results: resultsOf(entry),
		Now: o.Now().UnixMilli(),
	}
	value := remote.Value{State: &state, Alive: !entry.State.IsEnded(), Approvals: []job.Approval{}}
	for _, approval := range o.Jobs.Approvals() {
		if approval.Job == name && !approval.LeavesSandbox { // the owner of this PC answers those
			value.Approvals = append(value.Approvals, approval.Public())
		}
	}
	return value, nil
}

// resultsOf returns the last run of a job that has a result. While a run is in progress,
// that is the run before it.
func resultsOf(entry job.Job) int {
	if entry.Run > 0 && (!entry.State.IsEnded() && entry.State != job.Queued || !entry.ResultSent) {
		return entry.Run - 1
	}
	return entry.Run
}

// Result returns the result of a run of that owner's job. It fails with NotFound if owner has
// no such job or the run has no result, and with Storage if the result cannot be read.
func (o Owned) Result(name string, owner remote.Peer, run int) (*runs.Envelope, error) {
	entry, err := o.withResult(name, owner, run)
	if err != nil {
		return nil, err
	}
	envelope, err := o.Jobs.Result(entry, run)
	return &envelope, err
}

// withResult returns that owner's job. It fails with NotFound if the run has no result.
func (o Owned) withResult(name string, owner remote.Peer, run int) (job.Job, error) {
	entry, err := o.Job(name, owner)
	if err == nil && run > resultsOf(entry) {
		err = bridge.Errorf(bridge.NotFound, "run %d of %s has no result", run, name)
	}
	return entry, err
}

// placesOf returns the folders in which the job works.
func placesOf(entry job.Job) []remote.Place {
	folders := []string{entry.Workdir}
	if w := entry.Worktree; w != nil {
		folders = append(folders, w.RepoRoot, filepath.Dir(w.Path))
	}
	var places []remote.Place
	for _, folder := range slices.Compact(folders) {
		canonical, err := disk.CanonicalTarget(folder)
		if err != nil || canonical != folder {
			canonical = ""
		}
		places = append(places, remote.Place{What: "the job's folder", Given: cmp.Or(folder, "/"), Canonical: canonical})
	}
	return places
}

// Answer answers an approval request of a job of that owner, and returns when the runner has
// the answer (RMT-16). It fails with NotFound for an unknown job or approval, and with Conflict
// if the approval was answered or has ended. It fails with Unavailable if ctx ends before the
// runner has the answer.
func (o Owned) Answer(ctx context.Context, name string, owner remote.Peer, id string, decision job.Decision, reason string) error {
	entry, err := o.Job(name, owner)
	if err != nil {
		return err
	}
	approval, err := o.Jobs.Approval(id)
	if approval.Job != name {
		return bridge.Errorf(bridge.NotFound, "%s has no approval %q", name, id)
	}
	if err != nil {
		return err
	}
	address := bridge.Address{ID: entry.Supervisor, Name: entry.Owner}
	if err := o.Jobs.AnswerAs(address, id, decision, reason); err != nil {
		return err
	}
	return o.answered(ctx, id)
}

// answered waits until the runner has the answer to a question.
func (o Owned) answered(ctx context.Context, id string) error {
	tick := time.NewTicker(settleDelay)
	defer tick.Stop()
	for {
		approval, err := o.Jobs.Approval(id)
		switch {
		case approval.State == job.ApprovalDelivered || approval.State == job.ApprovalApplied:
			return nil
		case err != nil:
			return err
		case approval.State != job.ApprovalAnswered && approval.State != job.ApprovalAsked:
			return bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return bridge.Errorf(bridge.Unavailable, "the answer is recorded, and the job's runner does not have it yet: look at the job before you answer again")
		}
	}
}

// Say sends a message and settings to a job of that owner. Repeated calls with the same id take
// effect once. It fails with NotFound if owner has no such job here, and otherwise with the
// error of the job.
func (o Owned) Say(name string, owner remote.Peer, id string, control job.Control) (job.Delivery, error) {
	if _, err := o.Job(name, owner); err != nil {
		return "", err
	}
	control.By = owner.Name
	result, err := o.Jobs.Say(id, control)
	if err != nil || result.Delivery == nil {
		return "", err
	}
	return *result.Delivery, nil
}

// Cancel ends a job of that owner. It fails with NotFound if owner has no such job here.
func (o Owned) Cancel(name string, owner remote.Peer) (api.JobStatus, error) {
	if _, err := o.Job(name, owner); err != nil {
		return api.JobStatus{}, err
	}
	return o.Jobs.Cancel(name)
}
