package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bridge/backend/agent/driver/standin"
	"bridge/backend/platform/ipc"
)

// workerName is under which name this program is the agent of jobs: a stand-in that
// does what its prompt says.
const workerName = "claude"

func isWorker() bool {
	if filepath.Base(os.Args[0]) != workerName {
		return false
	}
	standin.Run(os.Args[1:])
	return true
}

// delegation is a broker whose sessions may hand work on.
type delegation struct {
	*running
	boss   *rpc
	worker string
	count  int
}

// delegating starts one, with a session that hands on. network is what its settings say
// of other PCs, and may be nil.
func (l *lab) delegating(ctx context.Context, name string, network map[string]any) (*delegation, error) {
	d, err := l.working(ctx, name, network)
	if err != nil {
		return nil, err
	}
	if d.boss, err = d.mcp(ctx, "boss"); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// working starts a broker that does jobs.
func (l *lab) working(ctx context.Context, name string, network map[string]any) (*delegation, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	worker, home := filepath.Join(l.dir, name+"-worker", workerName), filepath.Join(l.dir, name)
	for _, dir := range []string{filepath.Dir(worker), home} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink(self, worker); err != nil {
		return nil, err
	}
	settings := map[string]any{"jobs": map[string]any{"enabled": true, "maxJobs": 50}}
	if network != nil {
		settings["network"] = network
	}
	encoded, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "config.json"), encoded, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("BRIDGE_CLAUDE_BIN", worker); err != nil {
		return nil, err
	}
	b, err := l.start(ctx, name)
	started := &delegation{running: b, worker: worker}
	return started, errors.Join(err, os.MkdirAll(started.work(), 0o700))
}

// work is the folder in which the jobs work: none may write in one that holds Bridge's home.
func (d *delegation) work() string { return filepath.Join(d.lab.dir, "work") }

// file is a name that no other has, where the jobs may write.
func (d *delegation) file(what string) string {
	d.count++
	return filepath.Join(d.work(), fmt.Sprintf("%s-%d", what, d.count))
}

// spawn gives a job and returns its folder.
func (d *delegation) spawn(script string) (folder string, err error) {
	name, err := d.spawnClaude(map[string]any{"prompt": script, "cwd": d.work(), "access": "ask"})
	return filepath.Join(d.home.Dir(), "jobs", name), err
}

// spawnClaude calls the tool and returns the job's name.
func (d *delegation) spawnClaude(arguments map[string]any) (name string, err error) {
	raw, err := d.boss.request("tools/call", map[string]any{"name": "spawn_claude", "arguments": arguments})
	if err != nil {
		return "", err
	}
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	var answer struct{ Job string }
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	if result.IsError || len(result.Content) != 1 {
		return "", fmt.Errorf("spawn_claude: %s", raw)
	}
	if err := json.Unmarshal([]byte(result.Content[0].Text), &answer); err != nil {
		return "", err
	}
	return answer.Job, nil
}

// until waits for a file and tells when it was made.
func until(ctx context.Context, path string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		info, err := os.Stat(path)
		if err == nil {
			return info.ModTime(), nil
		}
		if !ipc.Pause(ctx, time.Millisecond) {
			return time.Time{}, fmt.Errorf("%s is not there: %w", path, ctx.Err())
		}
	}
}

func ended(ctx context.Context, folder string) error {
	_, err := until(ctx, filepath.Join(folder, "envelope.json"))
	return err
}

// jobs measures delegated jobs.
func (l *lab) jobs(ctx context.Context) (err error) {
	d, err := l.delegating(ctx, "jobs", nil)
	if err != nil {
		return err
	}
	defer func() {
		d.boss.close()
		err = errors.Join(err, d.stop())
	}()
	for _, measure := range []func(context.Context) error{d.starts, d.events, d.crowd} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// starts measures how soon a job is recorded and how soon its agent is at work, in
// turns with the same agent started by hand.
func (d *delegation) starts(ctx context.Context) error {
	rounds := 40
	if d.lab.quick {
		rounds = 12
	}
	var answers, jobs, hands times
	for range rounds {
		requestFile := d.file("asked")
		before := time.Now()
		folder, err := d.spawn("do touch " + requestFile + "\nsay done")
		if err != nil {
			return err
		}
		answers = append(answers, time.Since(before))
		at, err := until(ctx, requestFile)
		if err == nil {
			err = ended(ctx, folder)
		}
		if err != nil {
			return err
		}
		jobs = append(jobs, at.Sub(before))
		took, err := d.byHand(ctx)
		if err != nil {
			return err
		}
		hands = append(hands, took)
	}
	d.lab.add(row{what: "spawn_claude answers, the job durable", measured: fmt.Sprintf("%s p50, %s p95", answers.at(0.5), answers.at(0.95)), value: millis(answers.at(0.5)), goal: "p50 <= 20 ms", bound: 20})
	d.lab.add(row{what: "spawn to the agent's first act, more than by hand", measured: fmt.Sprintf("%s p50, by hand %s", jobs.at(0.5), hands.at(0.5)), value: millis(jobs.at(0.5) - hands.at(0.5)), goal: "<= 60 ms", bound: 60})
	return nil
}

func (d *delegation) byHand(ctx context.Context) (time.Duration, error) {
	requestFile := d.file("asked")
	cmd := exec.CommandContext(ctx, d.worker, "-p")
	input, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	before := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	err = json.NewEncoder(input).Encode(map[string]any{"type": "user", "uuid": "1", "message": map[string]any{"role": "user", "content": "do touch " + requestFile}})
	if err != nil {
		return 0, err
	}
	at, err := until(ctx, requestFile)
	return at.Sub(before), errors.Join(err, input.Close(), cmd.Wait())
}

// events measures how soon what an agent did stands in the log of its run, and how
// soon an open page hears of it.
func (d *delegation) events(ctx context.Context) error {
	rounds := 40
	if d.lab.quick {
		rounds = 15
	}
	var script strings.Builder
	var gates, stamps []string
	for range rounds {
		gates, stamps = append(gates, d.file("gate")), append(stamps, d.file("stamp"))
		fmt.Fprintf(&script, "wait %s\ndo touch %s\n", gates[len(gates)-1], stamps[len(stamps)-1])
	}
	folder, err := d.spawn(script.String() + "say done")
	if err != nil {
		return err
	}
	signals, stop, err := d.stream(ctx)
	if err != nil {
		return err
	}
	defer stop()
	log := filepath.Join(d.home.Dir(), "runs", filepath.Base(folder)+".log")
	var logged, streamed times
	for i := range rounds {
		ipc.Pause(ctx, time.Second/2) // what went before was told
		if err := os.WriteFile(gates[i], nil, 0o600); err != nil {
			return err
		}
		at, err := until(ctx, stamps[i])
		if err != nil {
			return err
		}
		seen := firstAfter(signals, at)
		for {
			data, err := os.ReadFile(log)
			if err == nil && strings.Count(string(data), "= done") > i {
				break
			}
			if !ipc.Pause(ctx, time.Millisecond) {
				return ctx.Err()
			}
		}
		logged = append(logged, time.Since(at))
		select {
		case took := <-seen:
			streamed = append(streamed, took)
		case <-time.After(10 * time.Second):
			return errors.New("the open page never hears of an event")
		}
	}
	d.lab.add(row{what: "an agent's act until its run's log has it", measured: fmt.Sprintf("%s p50, %s p95", logged.at(0.5), logged.at(0.95)), value: millis(logged.at(0.95)), goal: "p95 <= 50 ms", bound: 50})
	d.lab.add(row{what: "the same until an open page hears of it", measured: fmt.Sprintf("%s p50, %s p95", streamed.at(0.5), streamed.at(0.95)), value: millis(streamed.at(0.95)), goal: "p95 <= 250 ms", bound: 250})
	return ended(ctx, folder)
}

// firstAfter returns a channel that brings how long after a moment the next signal came.
func firstAfter(signals <-chan time.Time, at time.Time) <-chan time.Duration {
	seen := make(chan time.Duration, 1)
	go func() {
		for signal := range signals {
			if took := signal.Sub(at); took > 0 {
				seen <- took
				return
			}
		}
	}()
	return seen
}

// stream opens the page's event stream and tells when something came.
func (d *delegation) stream(ctx context.Context) (<-chan time.Time, context.CancelFunc, error) {
	client, base, err := d.page(ctx)
	if err != nil {
		return nil, nil, err
	}
	client.Timeout = 0
	ctx, stop := context.WithCancel(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/events", nil)
	if err != nil {
		stop()
		return nil, nil, err
	}
	response, err := client.Do(request) //nolint:bodyclose // whoever reads it closes it
	if err != nil {
		stop()
		return nil, nil, err
	}
	signals := make(chan time.Time, 1000)
	go func() {
		defer close(signals)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") {
				signals <- time.Now()
			}
		}
	}()
	return signals, stop, nil
}

// crowd measures what fifty jobs cost that wait, among 56 sessions.
func (d *delegation) crowd(ctx context.Context) error {
	const jobs, sessions = 50, 56
	var names []string
	for i := range sessions {
		names = append(names, fmt.Sprintf("member-%d", i))
	}
	if _, err := d.session(ctx, names...); err != nil {
		return err
	}
	get, err := d.browser(ctx)
	if err != nil {
		return err
	}
	state := func() error { return get("/api/state") }
	if _, err := repeat(nil, 100, state); err != nil {
		return err
	}
	before := resident(d.cmd.Process.Pid)
	gate := d.file("gate")
	var folders, started []string
	for range jobs {
		started = append(started, d.file("begun"))
		folder, err := d.spawn("do touch " + started[len(started)-1] + "\nwait " + gate + "\nsay done")
		if err != nil {
			return err
		}
		folders = append(folders, folder)
	}
	for _, name := range started {
		if _, err := until(ctx, name); err != nil {
			return err
		}
	}
	var elapsed times
	for range 200 {
		if elapsed, err = repeat(elapsed, 1, state); err != nil {
			return err
		}
		ipc.Pause(ctx, 20*time.Millisecond)
	}
	d.lab.add(row{what: "50 jobs and 56 sessions: GET /api/state", measured: fmt.Sprintf("%s p50, %s p95", elapsed.at(0.5), elapsed.at(0.95)), value: millis(elapsed.at(0.95)), goal: "p95 < 10 ms", bound: 10})
	after := resident(d.cmd.Process.Pid)
	d.lab.add(row{what: "50 jobs: what the broker has more", measured: fmt.Sprintf("%.1f MiB, before %.1f", after-before, before), value: after - before, goal: "< 15 MiB", bound: 15})
	if err := d.weighRunner(ctx, folders); err != nil {
		return err
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		return err
	}
	return over(ctx, folders)
}

// runnersOf returns the processes of these jobs' first runs.
func runnersOf(folders []string) (pids []int, err error) {
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join(folder, "run-1.json"))
		var claim struct{ Runner struct{ PID int } }
		if err == nil {
			err = json.Unmarshal(data, &claim)
		}
		if err != nil {
			return nil, err
		}
		pids = append(pids, claim.Runner.PID)
	}
	return pids, nil
}

// over waits until these jobs have ended and their runners have gone: each has brought
// its result to a broker, which must be there for that.
func over(ctx context.Context, folders []string) error {
	for _, folder := range folders {
		if err := ended(ctx, folder); err != nil {
			return err
		}
	}
	pids, err := runnersOf(folders)
	for _, pid := range pids {
		for resident(pid) > 0 {
			if !ipc.Pause(ctx, 10*time.Millisecond) {
				return ctx.Err()
			}
		}
	}
	return err
}

// weighRunner measures runners whose agents are quiet.
func (d *delegation) weighRunner(ctx context.Context, folders []string) error {
	pids, err := runnersOf(folders)
	if err != nil {
		return err
	}
	window := time.Minute
	if d.lab.quick {
		window = 15 * time.Second
	}
	before := spent(pids)
	ipc.Pause(ctx, window)
	share := 100 * (spent(pids) - before).Seconds() / window.Seconds() / float64(len(pids))
	largest, own := 0.0, 0.0
	for _, pid := range pids {
		largest, own = max(largest, resident(pid)), max(own, private(pid))
	}
	d.lab.add(row{what: "a quiet job's runner: resident", measured: fmt.Sprintf("%.1f MiB the largest of %d, %.1f MiB its own", largest, len(pids), own), value: largest, goal: "< 15 MiB", bound: 15})
	d.lab.add(row{what: "the same: of a core", measured: fmt.Sprintf("%.3f %% over %s", share, window), value: share, goal: "< 0.3 %", bound: 0.3})
	return nil
}

// ticks is the unit of times in /proc on Linux.
const ticks = 100

// spent is the processor time of these processes.
func spent(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		_, rest, found := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if err != nil || !found || len(fields) < 13 {
			continue
		}
		for _, field := range fields[11:13] {
			n, _ := strconv.Atoi(field) // written by the kernel
			sum += time.Duration(n) * time.Second / ticks
		}
	}
	return sum
}

// private is the memory in MiB that a process shares with no other.
func private(pid int) (mib float64) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "Private_") && len(fields) > 1 {
			kib, _ := strconv.ParseFloat(fields[1], 64) // written by the kernel
			mib += kib / 1024
		}
	}
	return mib
}

// hourly measures ten minutes of 500 jobs an hour.
func (l *lab) hourly(ctx context.Context) (err error) {
	if !l.long {
		return nil
	}
	d, err := l.delegating(ctx, "hourly", nil)
	if err != nil {
		return err
	}
	defer func() {
		d.boss.close()
		err = errors.Join(err, d.stop())
	}()
	const jobs, every = 83, time.Hour / 500
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var before, after inventory
	for i := range jobs {
		folder, err := d.spawn("do true\nsay done")
		if err == nil {
			err = ended(ctx, folder)
		}
		if err != nil {
			return err
		}
		if i == jobs/5 { // everything was used by then
			before = d.inventory()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	after = d.inventory()
	grown := after.mib - before.mib
	l.add(row{what: "500 jobs an hour: what the broker grows by", measured: fmt.Sprintf("%.1f MiB to %.1f", before.mib, after.mib), value: grown, goal: "<= 3 MiB in 66 jobs", bound: 3})
	l.add(row{what: "500 jobs an hour: more descriptors", measured: fmt.Sprintf("%d to %d", before.descriptors, after.descriptors), value: float64(after.descriptors - before.descriptors), goal: "<= 2", bound: 2})
	l.add(row{what: "500 jobs an hour: files of each", measured: fmt.Sprintf("%d to %d", before.files, after.files), value: float64(after.files-before.files) / float64(jobs-1-jobs/5), goal: "<= 12", bound: 12})
	return nil
}

type inventory struct {
	mib                float64
	descriptors, files int
}

func (d *delegation) inventory() (i inventory) {
	i.mib = resident(d.cmd.Process.Pid)
	descriptors, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid), "fd"))
	i.descriptors = len(descriptors)
	_ = filepath.WalkDir(d.home.Dir(), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			i.files++
		}
		return nil
	})
	return i
}
