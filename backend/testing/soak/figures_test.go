package soak

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

// The figures of a day.
const (
	resident = iota
	heap
	goroutines
	fileHandles
	disk
	latency
	figures // their number
)

// figure says how a figure is called, and when it counts as grown.
type figure struct {
	name, unit string
	// share and slack are how much more the last quarter of a day may have than the second
	// quarter: a share of it, and an amount.
	share, slack float64
	// isTotal marks a figure that grows with what is stored: its growth for each session
	// must not grow.
	isTotal bool
}

var figureOf = [figures]figure{
	resident:    {name: "memory", unit: "MiB", share: 0.15, slack: 4},
	heap:        {name: "live heap", unit: "MiB", share: 0.15, slack: 1},
	goroutines:  {name: "goroutines", unit: "", share: 0.1, slack: 10},
	fileHandles: {name: "file handles", unit: "", share: 0.1, slack: 10},
	disk:        {name: "disk", unit: "MiB", share: 0.5, slack: 12, isTotal: true}, // a snapshot and the log of the store come at once
	latency:     {name: "send", unit: "ms", share: 0.5, slack: 2},
}

// sample is what was measured at one moment.
type sample struct {
	at     time.Duration
	visits float64 // sessions that had come and gone
	values [figures]float64
}

// quarters returns the medians of a figure in the four quarters of the samples, and the
// middle one of the numbers of sessions.
func quarters(samples []sample, which int) (values, visits [4]float64) {
	for i := range values {
		var part, came []float64
		for _, s := range samples[i*len(samples)/4 : (i+1)*len(samples)/4] {
			part, came = append(part, s.values[which]), append(came, s.visits)
		}
		values[i], visits[i] = median(part), median(came)
	}
	return values, visits
}

// median returns the value in the middle, NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// growing returns a sentence for each figure that grows from the second quarter of a day to
// its last one. In the first quarter a process comes to what it keeps.
func growing(samples []sample) (problems []string) {
	if len(samples) < 8 {
		return []string{fmt.Sprintf("there are %d measurements, want at least 8", len(samples))}
	}
	for which, f := range figureOf {
		values, visits := quarters(samples, which)
		before, after := values[1], values[3]
		if f.isTotal {
			before = (values[1] - values[0]) / max(1, visits[1]-visits[0]) * (visits[3] - visits[2])
			after = values[3] - values[2]
		}
		if most := before*(1+f.share) + f.slack; !(after <= most) {
			problems = append(problems, fmt.Sprintf("%s grows: %.1f %s in the second quarter, %.1f in the last one, want at most %.1f", f.name, before, f.unit, after, most))
		}
	}
	return problems
}

// summary says what each figure was in the second and the last quarter, and what the heap
// grew by for 1,000 sessions.
func summary(samples []sample) string {
	var all []string
	for which, f := range figureOf {
		values, _ := quarters(samples, which)
		all = append(all, fmt.Sprintf("%s %.1f, then %.1f %s", f.name, values[1], values[3], f.unit))
	}
	values, visits := quarters(samples, heap)
	each := (values[3] - values[1]) / max(1, visits[3]-visits[1]) * 1000 * 1024
	return strings.Join(all, "; ") + fmt.Sprintf("; live heap per 1,000 sessions %+.0f KiB", each)
}

const (
	chartWidth, chartHeight = 860.0, 120.0
	chartLeft, chartTop     = 120.0, 30.0
)

// drawDay returns the figures over time as an SVG picture, one chart below the other.
func drawDay(samples []sample) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="13">`+"\n", chartLeft+chartWidth+20, figures*(chartHeight+chartTop)+20)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	length := time.Duration(1)
	if len(samples) > 0 {
		length = max(length, samples[len(samples)-1].at)
	}
	for which, f := range figureOf {
		top, most := float64(which)*(chartHeight+chartTop)+chartTop, 0.0
		for _, s := range samples {
			most = max(most, s.values[which])
		}
		var line strings.Builder
		for _, s := range samples {
			x, y := chartLeft+chartWidth*float64(s.at)/float64(length), top+chartHeight*(1-s.values[which]/max(most, 1e-9))
			fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
		}
		fmt.Fprintf(&b, `<text x="10" y="%.0f">%s</text><text x="10" y="%.0f" fill="gray">at most %.1f %s</text>`+"\n", top+14, html.EscapeString(f.name), top+32, most, f.unit)
		fmt.Fprintf(&b, `<path d="M%.0f,%.0f v%.0f h%.0f" fill="none" stroke="silver"/><polyline points="%s" fill="none" stroke="#2563eb"/>`+"\n", chartLeft, top, chartHeight, chartWidth, strings.TrimSpace(line.String()))
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" fill="gray">%s</text>`+"\n</svg>\n", chartLeft, figures*(chartHeight+chartTop)+14, length.Round(time.Second))
	return b.Bytes()
}

// steady returns the samples of a day in which nothing grows but the disk, changed by change.
func steady(change func(i int, s *sample)) (samples []sample) {
	for i := range 100 {
		s := sample{at: time.Duration(i) * time.Minute, visits: float64(i * 50)}
		s.values = [figures]float64{resident: 30, heap: 8, goroutines: 90, fileHandles: 40, disk: 5 + float64(i), latency: 1.5}
		if change != nil {
			change(i, &s)
		}
		samples = append(samples, s)
	}
	return samples
}

func TestPRF_06_WhatGrowsIsNamed(t *testing.T) {
	grows := func(which int, each float64) func(int, *sample) {
		return func(i int, s *sample) { s.values[which] += float64(i) * each }
	}
	for _, tt := range []struct {
		name   string
		change func(i int, s *sample)
		want   string // "" when nothing grows
	}{
		{name: "nothing"},
		{name: "memory", change: grows(resident, 0.5), want: "memory grows"},
		{name: "the heap", change: grows(heap, 0.05), want: "live heap grows"},
		{name: "goroutines", change: grows(goroutines, 1), want: "goroutines grows"},
		{name: "file handles", change: grows(fileHandles, 1), want: "file handles grows"},
		{name: "latency", change: grows(latency, 0.1), want: "send grows"},
		{name: "the disk, by more for each session", change: func(i int, s *sample) { s.values[disk] += float64(i*i) / 20 }, want: "disk grows"},
		{name: "the disk, faster with more sessions", change: func(i int, s *sample) { s.values[disk], s.visits = float64(i*i)/10, float64(i*i) }},
		{name: "memory, in the first quarter", change: func(i int, s *sample) { s.values[resident] -= max(0, float64(20-i)) }},
		{name: "memory, for a moment", change: func(i int, s *sample) {
			if i == 90 {
				s.values[resident] = 300
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(growing(steady(tt.change)), "\n")
			if tt.want == "" && got != "" || tt.want != "" && !strings.HasPrefix(got, tt.want) || strings.Contains(got, "\n") {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
	if got := growing(steady(nil)[:7]); len(got) != 1 || !strings.Contains(got[0], "7 measurements") {
		t.Errorf("of seven measurements it says %q", got)
	}
	if got := summary(steady(grows(heap, 0.05))); !strings.Contains(got, "live heap per 1,000 sessions +1024 KiB") {
		t.Errorf("the summary says %q", got)
	}
}

func TestPRF_06_ADayIsDrawn(t *testing.T) {
	for _, samples := range [][]sample{nil, steady(nil)[:1], steady(nil)} {
		drawn := drawDay(samples)
		decoder, lines := xml.NewDecoder(bytes.NewReader(drawn)), 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, drawn)
			}
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "polyline" {
				lines++
				if points := strings.Fields(start.Attr[0].Value); len(points) != len(samples) {
					t.Errorf("%d points of %d measurements", len(points), len(samples))
				}
			}
		}
		if lines != figures || bytes.Contains(drawn, []byte("NaN")) {
			t.Errorf("%d lines of %d figures:\n%s", lines, figures, drawn)
		}
	}
}
