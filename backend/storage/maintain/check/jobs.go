package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/orphans"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// entry is a job of the registry, with members that only the doctor reads.
type entry struct {
	job.Job
	Worktree struct {
		Path, Branch, RepoRoot string
		ReclaimedAt            job.Millis
	} `json:"worktree"`
}

// jobsChecker checks the delegated jobs. Jobs of other programs with the same layout are
// read as far as the layout is shared: they have no runs.
type jobsChecker struct {
	*checker
	jobs     map[string]entry // by name, those of the registry
	known    map[string]bool  // by name and by id, including archived ones
	complete bool             // known is complete
}

// checkJobs compares the registry with the folders, logs, questions and worktrees of its
// jobs, and checks their processes.
func (k *checker) checkJobs(ctx context.Context) error {
	c := &jobsChecker{checker: k, jobs: map[string]entry{}, known: map[string]bool{}}
	c.readRegistry()
	c.readArchive()
	for _, folder := range []string{"jobs", "archive/jobs"} {
		if k.quick && folder != "jobs" {
			continue // the archive only grows
		}
		for _, entry := range k.list(folder) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if name := entry.Name(); entry.IsDir() && job.IsName(name) {
				c.checkFolder(folder, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.jobs)) {
		c.checkEntry(c.jobs[name])
	}
	c.checkLogs()
	c.checkApprovals()
	c.checkWorktrees()
	c.checkRegistryLock()
	return nil
}

// list returns the entries of a folder of the home.
func (k *checker) list(folder string) []fs.DirEntry {
	entries, err := os.ReadDir(inventory.JoinHome(k.dir, folder))
	if err != nil && !inventory.IsGone(err) && !k.found(folder) {
		k.find(FileUnreadable, folder, disk.Reason(err))
	}
	return entries
}

// readRegistry reads the readable entries of jobs.json; checkJSON reports the rest.
func (c *jobsChecker) readRegistry() {
	data, err := disk.ReadLimited(inventory.JoinHome(c.dir, "jobs.json"), maxRegistryBytes)
	var file struct{ Jobs []json.RawMessage }
	if inventory.IsGone(err) {
		data, err = []byte("{}"), nil
	}
	if err != nil || json.Unmarshal(data, &file) != nil {
		return
	}
	c.complete = true
	for i, raw := range file.Jobs {
		var item entry
		var names struct{ Name, ID string }
		if json.Unmarshal(raw, &item.Job) != nil || json.Unmarshal(raw, &names) != nil {
			continue
		}
		_ = json.Unmarshal(raw, &struct{ Worktree any }{&item.Worktree}) // an invalid one is skipped
		switch _, twice := c.jobs[names.Name]; {
		case names.Name == "":
			c.find(JobDamaged, "jobs.json", fmt.Sprintf("jobs[%d] has no name", i))
		case twice:
			c.find(JobDamaged, "jobs.json", fmt.Sprintf("two jobs are named %s: neither is served, and both stay as they are", names.Name))
		default:
			c.jobs[names.Name], c.known[names.Name] = item, true
			c.known[names.ID] = true
		}
	}
	c.readWaiting()
}

// readWaiting reads the writes that wait until older programs permit changes of jobs.json
// (VER-05).
func (c *jobsChecker) readWaiting() {
	const path = pendingFolder + "/" + job.PendingFile
	data, err := disk.ReadLimited(inventory.JoinHome(c.dir, path), maxRegistryBytes)
	if inventory.IsGone(err) {
		return
	}
	var waiting job.Pending
	if err == nil {
		waiting, err = job.DecodePending(data)
	}
	if err != nil {
		c.complete = false
		c.find(PendingDamaged, path, inventory.ShortErr(err))
		return
	}
	waits(c.checker, "jobs.json")
	for _, waiting := range waiting.Jobs {
		var item entry
		if json.Unmarshal(waiting.Job, &item.Job) == nil {
			_ = json.Unmarshal(waiting.Job, &struct{ Worktree any }{&item.Worktree}) // invalid: skipped
			c.jobs[item.Name], c.known[item.Name], c.known[item.ID] = item, true, true
		}
	}
}

// maxRegistryBytes limits jobs.json, like its reader.
const maxRegistryBytes = 256 << 20

// readArchive reads the names of the archived jobs.
func (c *jobsChecker) readArchive() {
	for _, entry := range c.list("archive/jobs") {
		if name, isEntry := strings.CutSuffix(entry.Name(), ".json"); isEntry && !entry.IsDir() {
			c.known[name] = true
		}
	}
}

// belongs reports a file or folder of an unknown job.
func (c *jobsChecker) belongs(name, path, what string) {
	if c.complete && !c.known[name] {
		c.find(JobUnknown, path, fmt.Sprintf("%s of %s, which neither the registry nor the archive has", what, name))
	}
}

// checkFolder reads the files of a job's folder as their users do.
func (c *jobsChecker) checkFolder(above, name string) {
	folder := above + "/" + name
	c.belongs(name, folder, "it is the folder")
	c.parse(folder+"/spec.json", inventory.MaxRunnerBytes, func(data []byte) error { return c.readSpec(data, name) })
	var state runs.StateFile
	c.parse(folder+"/state.json", inventory.MaxRunnerBytes, func(data []byte) (err error) {
		state, err = runs.DecodeState(data, name)
		return err
	})
	c.parse(folder+"/orders.json", maxRegistryBytes, func(data []byte) error {
		var orders struct {
			Run    int               `json:"run"`
			Orders []json.RawMessage `json:"orders"`
			Late   []string          `json:"late"`
		}
		return json.Unmarshal(data, &orders)
	})
	c.checkRunnersJournal(folder + "/journal.jsonl")
	envelope := c.readEnvelope(folder, name)
	if above != "jobs" {
		return
	}
	if !c.quick {
		c.checkProcesses(folder)
	}
	entry, has := c.jobs[name]
	if run := max(state.Run, envelope.Run); has && run > entry.Run && entry.Run > 0 {
		c.find(JobContradiction, folder, fmt.Sprintf("the registry is at its run %d and its folder at run %d: jobs.json is older than what became of the job", entry.Run, run))
	}
	c.checkResult(entry, envelope, folder)
}

// parse reads a file of a job, if it exists. checkJSON reports invalid JSON.
func (c *jobsChecker) parse(name string, limit int64, read func([]byte) error) {
	data, err := disk.ReadLimited(inventory.JoinHome(c.dir, name), limit)
	if errors.Is(err, disk.ErrTooLarge) {
		c.find(JobDamaged, name, fmt.Sprintf("it is larger than %d bytes", limit))
		return
	}
	if err != nil || !json.Valid(data) {
		return
	}
	if err := read(data); err != nil {
		c.find(JobDamaged, name, "it cannot be read: "+inventory.ShortErr(err))
	}
}

// readSpec reads a spec. One that was restored from a copy lacks its secret.
func (c *jobsChecker) readSpec(data []byte, name string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	if _, has := members["token"]; !has {
		members["token"] = json.RawMessage(`"none"`)
		var err error
		if data, err = json.Marshal(members); err != nil {
			return err
		}
	}
	_, err := runs.DecodeSpec(data, name)
	return err
}

// checkRunnersJournal reads a runner's journal. An unfinished last line never had an
// effect.
func (c *jobsChecker) checkRunnersJournal(name string) {
	data, err := disk.ReadLimited(inventory.JoinHome(c.dir, name), maxRegistryBytes)
	if err != nil {
		if !inventory.IsGone(err) {
			c.find(FileUnreadable, name, disk.Reason(err))
		}
		return
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines[:len(lines)-1] {
		var entry struct {
			Run  int
			Kind string
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Run < 1 || entry.Kind == "" {
			c.find(JobDamaged, name, fmt.Sprintf("line %d is no entry of a journal", i+1))
			return
		}
	}
}

// readEnvelope reads the result of a job's last run. It returns the zero Envelope if it
// is unreadable.
func (c *jobsChecker) readEnvelope(folder, name string) (envelope runs.Envelope) {
	path := folder + "/envelope.json"
	if size := inventory.SizeOf(inventory.JoinHome(c.dir, path)); size > runs.MaxEnvelopeBytes {
		c.find(ResultManual, path, fmt.Sprintf("the result of %s is %s, too large to be read by itself: it is kept whole", name, bridge.Size(size)))
		return runs.Envelope{}
	}
	c.parse(path, runs.MaxEnvelopeBytes, func(data []byte) (err error) {
		envelope, err = runs.DecodeEnvelope(data, name)
		return err
	})
	return envelope
}

// checkResult compares the registry's end of a job with its envelope. Jobs of other
// programs have no counted run.
func (c *jobsChecker) checkResult(item entry, envelope runs.Envelope, folder string) {
	if item.Run == 0 || !item.State.IsEnded() || item.Remote != nil || c.found(folder+"/envelope.json") {
		return
	}
	switch {
	case envelope.Run == item.Run && item.State != job.Interrupted && item.State != job.Cancelled && envelope.State != item.State:
		c.find(JobContradiction, folder, fmt.Sprintf("the registry says %s and its envelope %s", item.State, envelope.State))
	case envelope.Run < item.Run && item.State != job.Interrupted:
		c.find(ResultMissing, folder+"/envelope.json", fmt.Sprintf("the registry says that run %d of %s is %s, and there is no envelope of it", item.Run, item.Name, item.State))
	}
}

// checkProcesses reports the leftover processes of a dead runner.
func (c *jobsChecker) checkProcesses(folder string) {
	remaining, err := orphans.Of(inventory.JoinHome(c.dir, folder))
	if err != nil || len(remaining) == 0 {
		return // an unreadable state is already a finding
	}
	numbers := make([]string, len(remaining))
	for i, process := range remaining {
		numbers[i] = fmt.Sprint(process.PID)
	}
	c.find(ProcessesLeft, folder, fmt.Sprintf("the runner of %s is gone and left running: process %s", path.Base(folder), strings.Join(numbers, ", ")))
}

// sendTime is how long a live broker may take to send a result.
const sendTime = time.Minute

// checkEntry checks a job of the registry.
func (c *jobsChecker) checkEntry(item entry) {
	if item.Run == 0 || item.Remote != nil {
		return
	}
	late := c.worker.Now().Sub(item.FinishedAt.Time()) > sendTime
	if item.State.IsEnded() && !item.ResultSent && (late || !c.live) {
		c.find(ResultUnsent, "jobs/"+item.Name, fmt.Sprintf("the result of run %d of %s was not sent to %s", item.Run, item.Name, item.Owner))
	}
	if item.State.IsEnded() && !isFolder(inventory.JoinHome(c.dir, "jobs/"+item.Name)) {
		c.find(ResultMissing, "jobs/"+item.Name, fmt.Sprintf("the registry has run %d of %s, and its folder is gone", item.Run, item.Name))
	}
	if w := item.Worktree; w.Path != "" && w.ReclaimedAt == 0 && !isFolder(w.Path) {
		c.find(WorktreeMissing, "jobs.json", fmt.Sprintf("the worktree %s of %s is gone; what was committed is on the branch %s of %s", w.Path, item.Name, w.Branch, w.RepoRoot))
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkLogs reports runs without a log, and logs without a job. No copy holds the text of
// runs, so a restore may leave many runs without a log: they are one finding.
func (c *jobsChecker) checkLogs() {
	for _, entry := range c.list("runs") {
		if name, isLog := strings.CutSuffix(entry.Name(), ".log"); isLog && job.IsName(name) {
			c.belongs(name, "runs/"+entry.Name(), "it is the log")
		}
	}
	var without []string
	for _, name := range slices.Sorted(maps.Keys(c.jobs)) {
		entry := c.jobs[name]
		isThere := !inventory.IsMissing(inventory.JoinHome(c.dir, "runs/"+name+".log"))
		if entry.Run > 0 && entry.Remote == nil && entry.State.IsEnded() && entry.Ended != job.EndedNotStarted && entry.Ended != job.EndedRunnerGone && !isThere {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		c.find(RunLogMissing, "runs", bridge.Counted(len(without), "run")+" without a log: "+strings.Join(without[:min(5, len(without))], ", "))
	}
}

// checkApprovals reports questions without a job, and open ones of a job that has ended.
func (c *jobsChecker) checkApprovals() {
	for _, file := range c.list("approvals") {
		name := "approvals/" + file.Name()
		if file.IsDir() || !inventory.IsApproval(name) {
			continue
		}
		c.parse(name, maxApprovalBytes, func(data []byte) error {
			var approval job.Approval
			if err := json.Unmarshal(data, &approval); err != nil || approval.Job == "" {
				return err
			}
			c.belongs(approval.Job, name, "it is a question")
			entry, has := c.jobs[approval.Job]
			isOpen := slices.Contains([]job.ApprovalState{job.ApprovalAsked, job.ApprovalAnswered, job.ApprovalDelivered}, approval.State)
			if has && entry.Run > 0 && isOpen && (entry.State.IsEnded() || entry.Run != approval.Run) {
				c.find(ApprovalLeft, name, fmt.Sprintf("it is %s, and the run of %s that asked has ended", approval.State, approval.Job))
			}
			return nil
		})
	}
}

// maxApprovalBytes limits one approval, like its reader.
const maxApprovalBytes = 1 << 20

// worktreeName ends in the name of the checkout's job.
var worktreeName = regexp.MustCompile(`-([a-z]+-(?:job|ask)-[0-9a-f]{8})$`)

// checkWorktrees reports checkouts without a job.
func (c *jobsChecker) checkWorktrees() {
	for _, entry := range c.list("worktrees") {
		if named := worktreeName.FindStringSubmatch(entry.Name()); named != nil && entry.IsDir() {
			c.belongs(named[1], "worktrees/"+entry.Name(), "it is the worktree")
		}
	}
}

// registryLock is held by other programs of the same layout while they write jobs.json.
const registryLock = "jobs.json.lock"

// checkRegistryLock reports the lock of a dead program: those programs wait for it.
func (c *jobsChecker) checkRegistryLock() {
	info, err := os.Lstat(filepath.Join(c.dir, registryLock))
	if err != nil || c.worker.Now().Sub(info.ModTime()) < settled {
		return
	}
	if older, err := lease.OlderPrograms(c.worker.Home); err == nil && len(older.Programs) == 0 {
		c.find(RegistryLockLeft, registryLock, "the program that held it is gone")
	}
}
