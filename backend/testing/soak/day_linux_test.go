package soak

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

const (
	// hoursEnv is how many hours the day lasts, as a decimal number. Without it the day
	// lasts shortDay.
	hoursEnv = "BRIDGE_SOAK_HOURS"
	// figureEnv is the file that the day's figures are drawn into, as SVG.
	figureEnv = "BRIDGE_SOAK_FIGURE"

	shortDay = 8 * time.Second
	// measures is how often a day is measured, at most every two seconds.
	measures = 600
	// visitEvery paces the sessions that come and go at each PC.
	visitEvery = 500 * time.Millisecond
)

// day is two paired PCs at work for hours. Sessions come and go at both, write to each
// other, and the first PC has jobs done by the second one. The link, the first PC's broker
// and the wire fail. The second PC's broker serves all the time, and is measured.
type day struct {
	*strife
	length  time.Duration
	began   time.Time
	broker  int // the process that is measured
	probe   *guest
	visits  atomic.Int64 // sessions that came and went at the second PC
	samples []sample

	visitors [2][]string // ids of the messages of sessions that came and went, by PC
}

// lengthOfDay returns how long the day lasts.
func lengthOfDay(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(hoursEnv)
	if text == "" {
		return shortDay
	}
	hours, err := strconv.ParseFloat(text, 64)
	if err != nil || hours <= 0 {
		t.Fatalf("%s is %q: it wants a number of hours, as 24 or 0.5", hoursEnv, text)
	}
	return time.Duration(hours * float64(time.Hour))
}

// TestPRF_06_ADay measures a broker at work: memory, goroutines, file handles, disk and
// latency stay flat, and nothing is lost or comes twice.
func TestPRF_06_ADay(t *testing.T) {
	d := &day{length: lengthOfDay(t), strife: newStrife(t)}
	d.troubles = slices.DeleteFunc(slices.Clone(troubles), func(failure trouble) bool { return failure.endsBrokerOfTwo })
	d.probe = d.pcs[1].guest("probe")
	d.broker = d.pcs[1].broker()
	d.began = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d.length)
	defer cancel()
	var work sync.WaitGroup
	work.Go(func() { d.weathers(ctx) })
	work.Go(func() { d.boss.chats(ctx, "two/peer") })
	work.Go(func() { d.peer.chats(ctx, "one/boss") })
	work.Go(func() { d.troublesFor(ctx) })
	work.Go(func() { d.jobs(ctx) })
	work.Go(func() { d.reads(ctx, d.peer) })
	for i := range d.pcs {
		work.Go(func() { d.visit(ctx, i) })
	}
	d.measure(ctx)
	work.Wait()
	d.count(time.Since(d.began))
	for at, to := range []*guest{d.boss, d.peer} {
		for _, id := range d.visitors[at] {
			if !to.has(id) {
				d.Errorf("%s is lost", id)
			}
		}
	}
	d.report()
}

// troublesFor allows a trouble from time to time, until ctx ends.
func (d *day) troublesFor(ctx context.Context) {
	ticker := time.NewTicker(min(time.Minute, d.length/5))
	defer ticker.Stop()
	for {
		d.left.Store(1)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			d.left.Store(0)
			return
		}
	}
}

// jobs has the second PC do jobs of one or two runs, one after the other, until ctx ends.
func (d *day) jobs(ctx context.Context) {
	for i := 0; ctx.Err() == nil && !d.Failed(); i++ {
		e := &errand{strife: d.strife, id: fmt.Sprintf("errand-%d", i), doubts: map[string]bool{}}
		d.tally.Lock()
		d.errands = append(d.errands, e)
		d.tally.Unlock()
		for range 2 {
			if err := e.run(true); err != nil {
				d.Error(err)
				return
			}
			if !e.wasStarted() {
				break
			}
		}
		select {
		case <-time.After(min(10*time.Second, d.length/10)):
		case <-ctx.Done():
		}
	}
}

// reads takes a session's mail each second, until ctx ends.
func (d *day) reads(ctx context.Context, g *guest) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for ctx.Err() == nil {
		g.collect()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// visit has sessions come to a PC, send a message, read their mail and leave, until ctx ends.
func (d *day) visit(ctx context.Context, at int) {
	ticker := time.NewTicker(visitEvery)
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		if err := d.visitOnce(at, i); err != nil {
			d.Errorf("session %d at %s: %v", i, d.pcs[at].name, err)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// visitOnce is the life of one session. A call that fails while the broker is replaced is
// made again, with the same message id.
func (d *day) visitOnce(at, number int) error {
	p := d.pcs[at]
	ctx, cancel := context.WithTimeout(context.Background(), 2*settle)
	defer cancel()
	name := fmt.Sprintf("v%d-%d", at, number)
	s, err := serveLines(ctx, p.command("mcp", "--agent", "claude", "--name", name, "--session", "host-"+name, "--cwd", p.dir), p.start)
	if err != nil {
		return err
	}
	id := "word-from-" + name
	send := func() error {
		return s.call(ctx, "send", map[string]any{"to": []string{"boss", "peer"}[at], "message": "word [" + id + "]", "message_id": id}, &struct{}{})
	}
	read := func() error { return s.call(ctx, "inbox", map[string]any{"limit": 10}, &struct{}{}) }
	for _, call := range []func() error{send, read} {
		for err = call(); err != nil && ctx.Err() == nil; err = call() {
			<-time.After(100 * time.Millisecond)
		}
		if err != nil {
			s.kill()
			return err
		}
	}
	d.visitors[at] = append(d.visitors[at], id)
	if at == 1 {
		d.visits.Add(1)
	}
	return s.close()
}

// measure takes samples until ctx ends.
func (d *day) measure(ctx context.Context) {
	ticker := time.NewTicker(max(2*time.Second, d.length/measures))
	defer ticker.Stop()
	for {
		next, err := d.sample()
		if err != nil {
			d.Errorf("measure the broker: %v", err)
			return
		}
		d.samples = append(d.samples, next)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// sample measures the second PC's broker.
func (d *day) sample() (s sample, err error) {
	p := d.pcs[1]
	s.at, s.visits = time.Since(d.began), float64(d.visits.Load())
	var status api.Status
	err = p.as(func(ctx context.Context, owner *ipc.Client) (err error) {
		status, err = owner.Status(ctx)
		return err
	})
	if err == nil && status.PID != d.broker {
		err = fmt.Errorf("process %d serves, which was %d", status.PID, d.broker)
	}
	if err != nil {
		return s, err
	}
	handles, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.broker))
	if err != nil {
		return s, err
	}
	s.values[resident] = float64(memoryOf(d.broker, "VmRSS")) / mib
	s.values[heap] = float64(status.HeapBytes) / mib
	s.values[goroutines] = float64(status.Goroutines)
	s.values[fileHandles] = float64(len(handles))
	s.values[disk] = float64(sizeOf(p.home.Dir())) / mib
	s.values[latency], err = d.sendTime()
	return s, err
}

// sendTime returns the median time of several sends of the probe, in milliseconds.
func (d *day) sendTime() (float64, error) {
	var taken []float64
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		began := time.Now()
		err := d.probe.server.call(ctx, "send", map[string]any{"to": "peer", "message": "probe", "message_id": fmt.Sprintf("probe-%d", rand.Int64())}, &struct{}{})
		cancel()
		if err != nil {
			return 0, err
		}
		taken = append(taken, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(taken)
	return taken[len(taken)/2], nil
}

// sizeOf returns the size of the files below a folder, in bytes.
func sizeOf(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil // files come and go
	})
	return size
}

// report draws the figures, and fails for each that grows.
func (d *day) report() {
	if path := os.Getenv(figureEnv); path != "" {
		if err := os.WriteFile(path, drawDay(d.samples), 0o600); err != nil {
			d.Error(err)
		}
	}
	d.Logf("%d sessions came and went at the second PC; %s", d.visits.Load(), summary(d.samples))
	if d.length == shortDay {
		if len(d.samples) < 3 || d.visits.Load() < 3 {
			d.Errorf("%d measurements and %d sessions in %s", len(d.samples), d.visits.Load(), d.length)
		}
		return // it takes minutes until a process has what it keeps
	}
	for _, problem := range growing(d.samples) {
		d.Error(problem)
	}
}
