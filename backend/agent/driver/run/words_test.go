package run

import (
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"bridge/backend/core/job"
)

// TestSEC_11_AnAnswerIsCutAndSaysSo: what is within the bound stays as it is.
func TestSEC_11_AnAnswerIsCutAndSaysSo(t *testing.T) {
	const most = job.MaxAnswerBytes
	for name, tt := range map[string]struct {
		piece string
		times int
		isCut bool
	}{
		"nothing":                 {"", 3, false},
		"a little":                {"words ", 3, false},
		"as much as is kept":      {strings.Repeat("x", most/4), 4, false},
		"one more":                {strings.Repeat("x", most/4+1), 4, true},
		"much more":               {strings.Repeat("x", most/2), 7, true},
		"in the middle of a rune": {"x" + strings.Repeat("é", most/4), 3, true},
	} {
		var words Words
		for range tt.times {
			words.Add(tt.piece)
		}
		whole := strings.Repeat(tt.piece, tt.times)
		for way, got := range map[string]string{"bit by bit": words.Take(), "at once": cutAnswer(whole)} {
			if !tt.isCut && got != whole {
				t.Errorf("%s, %s: %d bytes became %d", name, way, len(whole), len(got))
			}
			if way == "at once" && len(whole) <= most+noteRoom {
				continue
			}
			if tt.isCut && (len(got) > most+noteRoom || len(got) < most || !utf8.ValidString(got) || !strings.HasSuffix(got, "one answer.]") || !strings.HasPrefix(whole, got[:most-1])) {
				t.Errorf("%s, %s: %d bytes are kept of %d, and end %q", name, way, len(got), len(whole), got[max(0, len(got)-100):])
			}
		}
		if again := words.Take(); again != "" {
			t.Errorf("%s: the next answer begins with %d bytes of it", name, len(again))
		}
	}
}

// TestSEC_11_WhoSaysMuchWaitsForWhoReads: events wait for their reader up to a bound, and
// none is lost.
func TestSEC_11_WhoSaysMuchWaitsForWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Run{feed: newFeed()}
		said := 0
		go func() {
			for range 40 {
				r.Put(job.Text{Text: strings.Repeat("x", 1<<20)})
				said++
			}
			r.feed.close(job.Exited{})
		}()
		synctest.Wait()
		if said < 4 || said > mostBehind>>20+1 {
			t.Errorf("%d MiB wait for a reader, and %d may", said, mostBehind>>20)
		}
		heard := 0
		for event := range r.Events() {
			if _, is := event.(job.Text); is {
				heard++
			}
		}
		if heard != 40 {
			t.Errorf("%d of 40 were heard", heard)
		}
	})
}
