package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"bridge/backend/core/job"
)

// TestSEC_11_ALongLineIsCutAndStaysJSON: what is short in it is whole, wherever it stands.
func TestSEC_11_ALongLineIsCutAndStaysJSON(t *testing.T) {
	const limit = 64 << 10
	long := 5 * limit
	for name, tt := range map[string]struct{ text, list string }{
		"a long text":            {strings.Repeat("x", long), `1,2`},
		"escapes":                {strings.Repeat(`\"\\\n`, long/6), `1,2`},
		"escapes of code points": {strings.Repeat(`\u00e9`, long/6), `1,2`},
		"characters":             {strings.Repeat("é☃", long/5), `1,2`},
		"a long list":            {"short", strings.TrimSuffix(strings.Repeat(`{"id":"a","of":[1,"]"]},`, long/24), ",")},
		"a list in a list":       {"short", "[" + strings.TrimSuffix(strings.Repeat("1234567,", long/8), ",") + "],2"},
		"both":                   {strings.Repeat("x", long), strings.TrimSuffix(strings.Repeat(`"y",`, long/4), ",")},
	} {
		for shift := range 7 { // the limit is reached at each place
			whole := fmt.Sprintf(`{"type":"%s","text":"%s","list":[%s],"id":"the id","more":{"end":true}}`, strings.Repeat("t", shift), tt.text, tt.list)
			var got Line
			ReadLines(strings.NewReader(whole+"\n"), limit, func(line Line) { got = line })
			var read struct {
				Text string
				ID   string
				List []any
				More struct{ End bool }
			}
			if err := json.Unmarshal(got.Text, &read); err != nil || read.ID != "the id" || !read.More.End {
				t.Fatalf("%s: %v, %q, %v, of %d bytes that end %q", name, err, read.ID, read.More.End, len(got.Text), got.Text[max(0, len(got.Text)-100):])
			}
			if !got.IsCut || got.Said != int64(len(whole)+1) || len(got.Text) > limit+shortString+1024 {
				t.Errorf("%s: %d bytes are kept of %d, which are said to be %d, cut %v", name, len(got.Text), len(whole), got.Said, got.IsCut)
			}
			if strings.ContainsRune(read.Text, utf8.RuneError) {
				t.Errorf("%s: a character was cut: %q", name, read.Text[max(0, len(read.Text)-150):])
			}
			if len(tt.text) > limit && !strings.Contains(read.Text, "[Bridge cut this text here: it has ") {
				t.Errorf("%s: it does not say so: %q", name, read.Text[max(0, len(read.Text)-150):])
			}
		}
	}
}

// TestSEC_11_ALineUpToTheLimitStaysAsItIs: and one that cannot be cut is left out.
func TestSEC_11_ALineUpToTheLimitStaysAsItIs(t *testing.T) {
	const limit = 64 << 10
	object := func(members int) string {
		var b strings.Builder
		for i := range members {
			fmt.Fprintf(&b, `,"member %08d":%08d`, i, i)
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	}
	fits := `{"text":"` + strings.Repeat("x", limit-12) + `"}`
	for name, tt := range map[string]struct {
		line       string
		kept, left bool
	}{
		"one that fits":             {fits, true, false},
		"an object without end":     {object((limit + 2*lineSpare) / 26), false, true},
		"words that are no JSON":    {strings.Repeat("x ", limit+lineSpare), false, true},
		"more levels than are read": {strings.Repeat("[", limit+deepest), false, true},
	} {
		var got []Line
		ReadLines(strings.NewReader(tt.line+"\nthe next\n"), limit, func(line Line) { got = append(got, line) })
		if len(got) != 2 || string(got[1].Text) != "the next" || got[1].IsCut {
			t.Errorf("%s: %d lines were read", name, len(got))
			continue
		}
		if kept := string(got[0].Text) == tt.line; kept != tt.kept || got[0].IsCut == kept {
			t.Errorf("%s: it was kept as it is: %v, and cut: %v", name, kept, got[0].IsCut)
		}
		if left := len(got[0].Text) == 0; left != tt.left || got[0].Said != int64(len(tt.line)+1) {
			t.Errorf("%s: it was left out: %v, of %d bytes", name, left, got[0].Said)
		}
	}
}

// TestSEC_11_ARunSaysThatALineWasCut: and what is asked in it is marked.
func TestSEC_11_ARunSaysThatALineWasCut(t *testing.T) {
	r := &Run{feed: newFeed(), questions: map[string]*asked{}}
	long := `{"text":"` + strings.Repeat("x", MaxLine) + `"}`
	noJSON := strings.Repeat("x", MaxLine+2*lineSpare)
	asks := 0
	go func() {
		r.readLines(strings.NewReader(long+"\n"+noJSON+"\n{}\n"), func(line []byte) {
			asks++
			r.Ask(job.Question{ID: fmt.Sprint(asks)})
		})
		r.feed.close(job.Exited{})
	}()
	var cuts []job.LineCut
	var marked []bool
	for event := range r.Events() {
		switch e := event.(type) {
		case job.LineCut:
			cuts = append(cuts, e)
		case job.Asked:
			marked = append(marked, e.Question.IsCut)
		default:
		}
	}
	if len(cuts) != 2 || cuts[0].Bytes != int64(len(long)+1) || cuts[0].Kept < MaxLine || cuts[1].Bytes != int64(len(noJSON)+1) || cuts[1].Kept != 0 {
		t.Errorf("it says %+v", cuts)
	}
	if fmt.Sprint(marked) != "[true false]" {
		t.Errorf("the questions are cut: %v", marked)
	}
}
