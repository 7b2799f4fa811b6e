// Command bench measures Bridge against baselines taken in the same run on the
// same disk, and prints one table of ratios. It builds nothing but the empty
// program that hooks are compared with: give it the binary, with bridge-hook
// beside it. Every figure comes from the real program: a broker process, MCP
// server processes, hook processes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line of the table. A bound of 0 has no goal.
type row struct {
	what     string
	measured string
	value    float64
	goal     string
	bound    float64
	atLeast  bool
}

func (r row) verdict() string {
	switch {
	case r.bound == 0:
		return ""
	case r.atLeast && r.value >= r.bound, !r.atLeast && r.value <= r.bound:
		return "ok"
	default:
		return "MISSED"
	}
}

// lab is what the measurements share.
type lab struct {
	binary string
	dir    string // on the disk that is measured
	pcs    int    // of the large team
	quick  bool
	long   bool          // also what takes ten minutes by itself
	rest   time.Duration // what a broker is left alone before its memory is read again
	rows   []row
}

func (l *lab) add(r row) { l.rows = append(l.rows, r) }

func main() {
	if isWorker() || isMembers() {
		return
	}
	binary := flag.String("bridge", "bin/bridge", "the bridge binary to measure")
	dir := flag.String("dir", "", "folder on the disk to measure; a temporary one by default")
	quick := flag.Bool("quick", false, "fewer rounds, small stores, and none of five million messages")
	long := flag.Bool("long", false, "also ten minutes of 500 jobs an hour")
	runs := flag.Int("runs", 1, "how often everything is measured; the table has the medians")
	rest := flag.Duration("rest", 10*time.Minute, "how long a broker is left alone before its memory is read again; at most 20 s with -quick")
	pcs := flag.Int("pcs", 1000, "how many PCs the large team has; at most 100 with -quick")
	only := flag.String("only", "", "one part: sends, pushes, crowd, hooks, jobs, owner, prompts, hourly, links, mirrors, hub, team, storage, growth or page; all by default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l := &lab{quick: *quick, long: *long, rest: *rest, pcs: *pcs}
	if l.quick {
		l.rest, l.pcs = min(l.rest, 20*time.Second), min(l.pcs, 100)
	}
	if err := l.run(ctx, *binary, *dir, *only, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (l *lab) run(ctx context.Context, binary, dir, only string, runs int) (err error) {
	if l.binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	defer func() { l.print() }() // what was measured before a part failed counts
	for range max(1, runs) {
		if err := l.once(ctx, dir, only); err != nil {
			return err
		}
	}
	return nil
}

// once measures the parts one time, in a folder of its own.
func (l *lab) once(ctx context.Context, dir, only string) (err error) {
	if l.dir, err = os.MkdirTemp(dir, "bridge-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(l.dir)) }()
	known := false
	for _, part := range l.parts() {
		if only != "" && part.name != only {
			continue
		}
		known = true
		if err := part.measure(ctx); err != nil {
			return err
		}
	}
	if !known {
		return fmt.Errorf("there is no part %q", only)
	}
	return nil
}

// part is some of the measurements, by name.
type part struct {
	name    string
	measure func(context.Context) error
}

func (l *lab) parts() []part {
	return []part{
		{"sends", l.sends},
		{"pushes", l.pushes},
		{"crowd", l.crowd},
		{"hooks", l.hooks},
		{"jobs", l.jobs},
		{"owner", l.owner},
		{"prompts", l.prompts},
		{"hourly", l.hourly},
		{"links", l.links},
		{"mirrors", l.mirrors},
		{"hub", l.hub},
		{"team", l.team},
		{"storage", l.storage},
		{"growth", l.growth},
		{"page", l.page},
	}
}

func (l *lab) print() {
	if len(l.rows) == 0 {
		return
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURED\tFIGURE\tRATIO OR VALUE\tGOAL\t")
	for _, r := range medians(l.rows) {
		fmt.Fprintf(table, "%s\t%s\t%.2f\t%s\t%s\n", r.what, r.measured, r.value, r.goal, r.verdict())
	}
	_ = table.Flush() // standard output
}

// medians keeps, of the rows with the same name, the one in the middle.
func medians(rows []row) (merged []row) {
	for len(rows) > 0 {
		name := rows[0].what
		same, others := []row{}, []row{}
		for _, r := range rows {
			if r.what == name {
				same = append(same, r)
			} else {
				others = append(others, r)
			}
		}
		slices.SortStableFunc(same, func(a, b row) int { return cmp.Compare(a.value, b.value) })
		merged, rows = append(merged, same[(len(same)-1)/2]), others
	}
	return merged
}

// times is a list of durations.
type times []time.Duration

// at returns the given share of the sorted list: 0.5 is the median.
func (t times) at(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
