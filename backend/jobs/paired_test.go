package jobs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/network/remotejobs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

var laptop = remote.Peer{ID: "key-of-laptop", Name: "laptop", Supervisor: "s-1"}

func (b *bench) owned() remotejobs.Owned {
	return remotejobs.Owned{Jobs: b.jobs, Git: b.git, Now: b.now}
}

// within allows what lies in that folder.
func within(root string) func([]remote.Place) error {
	policy := remote.Policy{RemoteJobs: remote.RemoteJobs{AllowRoots: []string{root}}}
	return func(places []remote.Place) error { return policy.AllowPlaces("laptop", []string{root}, places) }
}

// grounds is a canonical folder that a paired PC may work in.
func grounds(t *testing.T) string {
	t.Helper()
	root, err := disk.Canonical(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func (b *bench) spawnPaired(owner remote.Peer, name, folder, root string, change func(*job.Request)) error {
	request := job.Request{Kind: bridge.Codex, Prompt: "Do it.", Title: "It", Access: job.AccessEdit, Cwd: folder, Timeout: time.Hour}
	if change != nil {
		change(&request)
	}
	return b.owned().Spawn(b.t.Context(), remotejobs.Asked{Name: name, Request: request, Owner: owner, Allow: within(root)})
}

func TestJOB_04_AResultTooLargeForTheLinkSaysWhichPCKeepsIt(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.finish("Done.")
	envelope := filepath.Join(r.folder, "envelope.json")
	if err := os.Truncate(envelope, runs.MaxEnvelopeBytes+1); err != nil {
		t.Fatal(err)
	}
	got, err := b.owned().Result(first, laptop, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, got.Result, "kept whole in "+envelope+" on the PC that did the job")
}

func TestRMT_12_AJobOfAPairedPCIsItsOwnersAlone(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	if !r.spec.Unlinked || r.spec.Folder != root || r.spec.Supervisor != "laptop/s-1" {
		t.Errorf("its runner is asked for %+v", r.spec)
	}
	sibling, other := laptop, laptop
	sibling.Supervisor, other.ID = "s-2", "key-of-desk"
	for who, peer := range map[string]remote.Peer{"another session there": sibling, "another PC of that name": other} {
		_, err := b.owned().State(first, peer)
		wantCode(t, who+" looks", err, bridge.NotFound)
		_, err = b.owned().Say(first, peer, "m-1", job.Control{Job: first, Message: "Stop."})
		wantCode(t, who+" speaks", err, bridge.NotFound)
		_, err = b.owned().Result(first, peer, 1)
		wantCode(t, who+" asks for its result", err, bridge.NotFound)
		_, err = b.owned().Cancel(first, peer)
		wantCode(t, who+" cancels", err, bridge.NotFound)
		wantCode(t, who+" answers", b.owned().Answer(t.Context(), first, peer, "q1", job.Allow, ""), bridge.NotFound)
		wantCode(t, who+" asks for it", b.spawnPaired(peer, first, root, root, nil), bridge.Conflict)
	}
	s := b.join("boss", "s1")
	_, err := s.say(first, "Stop.")
	wantCode(t, "a session of this PC", err, bridge.Denied)
	s.mustSpawn("02", `{"prompt":"x"}`)
	_, err = b.owned().State(second, laptop)
	wantCode(t, "a job of this PC", err, bridge.NotFound)

	b.down()
	b.up()
	value, err := b.owned().State(first, laptop)
	if err != nil || !value.Alive || value.State.Workdir != root {
		t.Errorf("after a restart its owner finds %+v, %v", value, err)
	}
}

func TestRMT_13_TheSameJobAskedForTwiceIsOne(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	var tasks sync.WaitGroup
	for range 8 {
		tasks.Go(func() {
			if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
				t.Error(err)
			}
		})
	}
	tasks.Wait()
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("Done.")
	if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
		t.Error(err)
	}
	if len(b.jobs.Views()) != 1 || len(b.starts) != 0 {
		t.Errorf("%d jobs, %d more starts", len(b.jobs.Views()), len(b.starts))
	}
}

func TestRMT_15_ItsResultIsToldAndNotMailedHere(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("There are 12.")
	value, err := b.owned().State(first, laptop)
	if err != nil || value.Alive || value.State.Status != job.Finished || value.State.Results != 1 {
		t.Errorf("its owner is told %+v, %v", value.State, err)
	}
	result, err := b.owned().Result(first, laptop, 1)
	if err != nil || result.MessageID != "result-codex-job-00000001-1" || result.Result != "There are 12." {
		t.Errorf("its result is %+v, %v", result, err)
	}
	_, err = b.owned().Result(first, laptop, 2)
	wantCode(t, "the result of a run that was not", err, bridge.NotFound)
	mailed, err := b.db.SentBefore(t.Context(), bridge.Message{ID: result.MessageID})
	if err != nil || len(mailed) != 0 {
		t.Errorf("here it was mailed as %+v, %v", mailed, err)
	}
}

func TestRMT_11_NoSessionButThatOfAnOwnJob(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	s := b.join("boss", "s1")
	s.mustSpawn("02", `{"prompt":"x"}`)
	local := b.started()
	local.connect(api.RunnerReport{})
	local.work()
	local.finish("Done.")
	session := func(id string) func(*job.Request) { return func(r *job.Request) { r.SessionID = id } }
	wantCode(t, "one of this PC's", b.spawnPaired(laptop, first, root, root, session("thread-"+second)), bridge.Denied)
	wantCode(t, "one that nobody knows", b.spawnPaired(laptop, first, root, root, session("x")), bridge.Denied)
	if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("Done.")
	sibling := laptop
	sibling.Supervisor = "s-2"
	const third = "codex-job-00000003"
	wantCode(t, "one of a sibling's", b.spawnPaired(sibling, third, root, root, session("thread-"+first)), bridge.Denied)
	if err := b.spawnPaired(laptop, third, root, root, session("thread-"+first)); err != nil {
		t.Errorf("one's own: %v", err)
	}
}

func TestRMT_16_AnAnswerReturnsWhenTheRunnerHasIt(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, func(r *job.Request) { r.Access = job.AccessAsk }); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.ask(job.ApprovalAsked)
	value, err := b.owned().State(first, laptop)
	if err != nil || len(value.Approvals) != 1 || value.Approvals[0].ID != "q1" || value.Approvals[0].Token != "" {
		t.Fatalf("its owner is shown %+v, %v", value.Approvals, err)
	}
	waiting, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	done := make(chan error, 1)
	go func() { done <- b.owned().Answer(waiting, first, laptop, "q1", job.Allow, "") }()
	if orders := r.orders(); len(orders) != 1 || orders[0].Kind != api.OrderAnswer || orders[0].Decision != job.Allow || orders[0].By != "laptop/s-1" {
		t.Errorf("the runner is told %+v", orders)
	}
	giveUp() // it has been told, and did not say that it has it
	wantCode(t, "before the runner has it", <-done, bridge.Unavailable)
	r.ask(job.ApprovalWithdrawn)
	wantCode(t, "one that is gone", b.owned().Answer(t.Context(), first, laptop, "q1", job.Deny, ""), bridge.Conflict)
}

func TestSEC_03_APairedPCIsNotAskedAboutWhatLeavesTheSandbox(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, func(r *job.Request) { r.Access = job.AccessAsk }); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.askOutside()
	value, err := b.owned().State(first, laptop)
	if err != nil || len(value.Approvals) > 0 {
		t.Errorf("its owner is shown %+v, %v", value.Approvals, err)
	}
	wantCode(t, "it allows all the same", b.owned().Answer(t.Context(), first, laptop, "q1", job.Allow, ""), bridge.Denied)
}

func TestRMT_16_AnAnswerThatTheRunnerTook(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, func(r *job.Request) { r.Access = job.AccessAsk }); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.ask(job.ApprovalAsked)
	done := make(chan error, 1)
	go func() { done <- b.owned().Answer(b.t.Context(), first, laptop, "q1", job.Allow, "") }()
	order := r.orders()[0]
	select {
	case err := <-done:
		t.Fatalf("it returned before the runner had it: %v", err)
	default:
	}
	r.ask(job.ApprovalDelivered)
	r.report(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: order.ID}}})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRMT_09_RealFoldersAndLinks(t *testing.T) {
	b := newBench(t)
	b.down()
	var err error
	if b.git, err = gitwork.New(append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")); err != nil {
		t.Fatal(err)
	}
	b.up()
	sh := func(t *testing.T, dir, script string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	root, outside := grounds(t), grounds(t)
	sh(t, root, "git init -q repo && cd repo && git config user.name x && git config user.email x@x && git commit -q --allow-empty -m x && git worktree add -q ../linked")
	sh(t, root, "git clone -q repo hooked && rm -rf hooked/worktrees && ln -s "+outside+" hooked/worktrees")
	sh(t, outside, "git init -q secret && cd secret && git config user.name x && git config user.email x@x && git commit -q --allow-empty -m x")
	sh(t, root, "mkdir in 'with space' && ln -s in alias && ln -s "+outside+" out && ln -s nowhere dangling && mkfifo pipe && touch file && mkdir borrowed && echo gitdir: "+outside+"/secret/.git > borrowed/.git && ln -s loop loop")
	sh(t, outside, "mkdir elsewhere && ln -s "+root+"/in back && git -C "+root+"/repo worktree add -q "+outside+"/tree")
	for _, tt := range []struct {
		name, cwd string
		worktree  bool
		want      bridge.Code // "" is taken
		at        string      // where it works then
	}{
		{"a folder", root + "/in", false, "", root + "/in"},
		{"the root", root, false, "", root},
		{"a link within", root + "/alias", false, "", root + "/in"},
		{"a link from outside that leads in", outside + "/back", false, "", root + "/in"},
		{"a repository", root + "/repo", true, "", ""},
		{"a linked worktree within", root + "/linked", true, "", ""},

		{"a folder outside", outside, false, bridge.Denied, ""},
		{"one that is not there, outside", outside + "/x", false, bridge.Denied, ""},
		{"a link that leads out", root + "/out", false, bridge.Denied, ""},
		{"below a link that leads out", root + "/out/elsewhere", false, bridge.Denied, ""},
		{"dots", root + "/in/../in", false, bridge.Denied, ""},
		{"dots that lead out", root + "/../" + filepath.Base(outside), false, bridge.Denied, ""},
		{"a link that leads nowhere", root + "/dangling", false, bridge.Denied, ""},
		{"a link to itself", root + "/loop", false, bridge.Denied, ""},
		{"a pipe", root + "/pipe", false, bridge.NotFound, ""},
		{"a file", root + "/file", false, bridge.NotFound, ""},
		{"a checkout whose repository lies outside", outside + "/tree", true, bridge.Denied, ""},
		{"a folder whose git directory lies outside", root + "/borrowed", true, bridge.Denied, ""},
		{"worktrees is a link that leads out", root + "/hooked", true, bridge.Denied, ""},
		{"no repository", root + "/in", true, bridge.NotFound, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := job.Name(bridge.Codex, false, [4]byte{byte(len(b.jobs.Views())), 1, 2, byte(len(tt.name))})
			before := len(b.jobs.Views())
			err := b.spawnPaired(laptop, name, tt.cwd, root, func(r *job.Request) { r.Worktree = tt.worktree })
			if tt.want != "" {
				wantCode(t, tt.cwd, err, tt.want)
				if len(b.jobs.Views()) != before || tt.want == bridge.Denied && strings.Contains(err.Error(), outside) {
					t.Errorf("%d jobs instead of %d, and it says %v", len(b.jobs.Views()), before, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			entry, _ := b.owned().Job(name, laptop)
			if tt.at != "" && entry.Workdir != tt.at {
				t.Errorf("it works in %s", entry.Workdir)
			}
			if tt.worktree && entry.Worktree.Path != root+"/repo/worktrees/repo-"+name {
				t.Errorf("its checkout is %s", entry.Worktree.Path)
			}
		})
	}
}

func TestRMT_09_AFolderThatIsSwappedForALinkGainsNothing(t *testing.T) {
	b := newBench(t)
	root, outside := grounds(t), grounds(t)
	if err := os.Mkdir(root+"/real", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root+"/real", root+"/at"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for to := range cycle(stop, outside, root+"/real") {
			_ = os.Symlink(to, root+"/next")
			_ = os.Rename(root+"/next", root+"/at") // at once: at is always there
		}
	})
	taken, refused := 0, 0
	for i := range 150 {
		name := job.Name(bridge.Codex, false, [4]byte{1, 2, 3, byte(i)})
		switch err := b.spawnPaired(laptop, name, root+"/at", root, nil); bridge.CodeOf(err) {
		case "":
			taken++
			if entry, _ := b.owned().Job(name, laptop); entry.Workdir != root+"/real" {
				t.Fatalf("a job works in %s", entry.Workdir)
			}
		case bridge.Denied:
			refused++
		default:
			t.Fatal(err)
		}
	}
	close(stop)
	swapper.Wait()
	t.Logf("%d taken, %d refused", taken, refused)
}

// cycle gives the values over and over until stop is closed.
func cycle(stop <-chan struct{}, values ...string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if !yield(values[i%len(values)]) {
					return
				}
			}
		}
	}
}

func TestRMT_09_AFolderThatIsSwappedBetweenTwoLooks(t *testing.T) {
	b := newBench(t)
	root, outside := grounds(t), grounds(t)
	if err := os.Mkdir(root+"/real", 0o700); err != nil {
		t.Fatal(err)
	}
	swap := func(places []remote.Place) error {
		if err := within(root)(places); err != nil {
			return err
		}
		_ = os.Rename(root+"/real", root+"/away")
		return os.Symlink(outside, root+"/real")
	}
	request := job.Request{Kind: bridge.Codex, Prompt: "Do it.", Access: job.AccessEdit, Cwd: root + "/real", Timeout: time.Hour}
	err := b.owned().Spawn(t.Context(), remotejobs.Asked{Name: first, Request: request, Owner: laptop, Allow: swap})
	if err == nil || len(b.jobs.Views()) != 0 {
		t.Errorf("swapped after the check: %v, %d jobs", err, len(b.jobs.Views()))
	}
}

func TestRMT_05_AJobOfAPairedPCHandsOnNoWork(t *testing.T) {
	b := newBench(t)
	root := grounds(t)
	if err := b.spawnPaired(laptop, first, root, root, nil); err != nil {
		t.Fatal(err)
	}
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	_, err := b.jobs.Take(t.Context(), job.Request{Kind: bridge.Codex, Prompt: "x", Access: job.AccessRead, Cwd: root}, second, job.Caller{Name: first, ID: first, IsJob: true, Inside: true}, "")
	wantCode(t, "a job below it", err, bridge.Denied)
	if err == nil || !strings.Contains(err.Error(), "paired PC") {
		t.Errorf("it says %v", err)
	}
}
