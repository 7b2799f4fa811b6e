package runs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

func at(path string) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, 0, err
		}
		file, err := os.Open(path)
		return file, info.Size(), err
	}
}

// TestSEC_11_OfALongResultTheBeginIsRead: with how much there is of it. A result within the
// bound is whole, and no other member is cut.
func TestSEC_11_OfALongResultTheBeginIsRead(t *testing.T) {
	const most = 1000
	path := filepath.Join(t.TempDir(), "envelope.json")
	for name, tt := range map[string]struct {
		result string
		isPart bool
	}{
		"as much as is read":   {strings.Repeat("x", most), false},
		"one more":             {strings.Repeat("x", most+1), true},
		"many":                 {strings.Repeat("x", 300_000), true},
		"characters":           {strings.Repeat("é☃😀", 5000), true},
		"escapes":              {strings.Repeat("\n\"\\\x01<", 5000), true},
		"spaces first":         {strings.Repeat(" \n", most) + "the answer", true},
		"JSON":                 {strings.Repeat(`{"result":"x"},`, 5000), true},
		"in the middle of one": {"x" + strings.Repeat("é", most), true},
	} {
		want := NewEnvelope(named(1), 2, answered, tt.result, Evidence{Head: `"result":"`, Commands: []Command{{Command: strings.Repeat("c", 2*most)}}}, noon)
		want.Title = strings.Repeat("result", 500)
		data, err := want.Encode()
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, size, err := ReadEnvelope(at(path), named(1), most)
		encoded, _ := got.EncodedBytes()
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got.IsPart() != tt.isPart || size != int64(len(data)) || encoded != size:
			t.Errorf("%s: it is a part: %v, of %d and %d bytes, want %d", name, got.IsPart(), size, encoded, len(data))
		case !strings.HasPrefix(tt.result, got.Result) || len(got.Result) > most || tt.isPart && len(got.Result) < most/8:
			t.Errorf("%s: %d bytes were read that end %q", name, len(got.Result), got.Result[max(0, len(got.Result)-20):])
		case got.Chars() != utf8.RuneCountInString(tt.result) || tt.isPart && got.full.bytes != int64(len(tt.result)):
			t.Errorf("%s: it is said to have %d characters, and has %d", name, got.Chars(), utf8.RuneCountInString(tt.result))
		case got.Title != want.Title || got.Evidence.Head != want.Evidence.Head || got.Evidence.Commands[0] != want.Evidence.Commands[0] || got.Outcome() != want.Outcome():
			t.Errorf("%s: something else was cut: %+v", name, got.Evidence)
		}
		if _, err := got.Encode(); (err != nil) != tt.isPart {
			t.Errorf("%s: it is written, %v", name, err)
		}
		if got, want := got.Shown("/e.json").Result, "kept whole in /e.json.]"; strings.HasSuffix(got, want) != tt.isPart {
			t.Errorf("%s: it is shown as %q", name, got[max(0, len(got)-100):])
		}
	}
}

// TestSEC_11_AMessageOfAPartTellsOfAllOfIt: the message is that of the whole result.
func TestSEC_11_AMessageOfAPartTellsOfAllOfIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envelope.json")
	whole := NewEnvelope(named(1), 1, answered, strings.Repeat("ä☃", 3<<20), Evidence{}, noon)
	data, err := whole.Encode()
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := ReadEnvelope(at(path), named(1), ShownBytes)
	if err != nil || !read.IsPart() {
		t.Fatalf("it is a part: %v, %v", read.IsPart(), err)
	}
	if got := read.Body("/e.json"); got != whole.Body("/e.json") || utf8.RuneCountInString(got) != bridge.MaxBodyChars {
		t.Errorf("it has %d characters: %.200s", utf8.RuneCountInString(got), got)
	}
}

// TestSEC_11_AnEnvelopeIsRefusedByItsHead: what is wrong with it is seen without its text.
func TestSEC_11_AnEnvelopeIsRefusedByItsHead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envelope.json")
	good, _ := NewEnvelope(named(1), 1, answered, "the answer", Evidence{}, noon).Encode()
	blank, _ := NewEnvelope(named(1), 1, answered, " \n\t\r ", Evidence{}, noon).Encode()
	for name, tt := range map[string]struct {
		data string
		ok   bool
	}{
		"a good one":       {string(good), true},
		"of another job":   {strings.Replace(string(good), `"job":"codex`, `"job":"other`, 1), false},
		"of no end":        {strings.Replace(string(good), `"state":"finished"`, `"state":"running"`, 1), false},
		"without answer":   {string(blank), false},
		"cut in its text":  {strings.SplitAfter(string(good), "the an")[0], false},
		"cut at its end":   {string(good[:len(good)-1]), false},
		"something behind": {string(good) + "{}", false},
		"empty":            {"", false},
	} {
		if err := os.WriteFile(path, []byte(tt.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := ReadEnvelope(at(path), named(1), 0); (err == nil) != tt.ok || got.Result != "" {
			t.Errorf("%s: %q, %v", name, got.Result, err)
		}
	}
	largest := NewEnvelope(named(1), 1, answered, "", Evidence{}, noon)
	size, _ := largest.EncodedBytes()
	largest.Result = strings.Repeat("x", MaxEnvelopeBytes-int(size))
	data, err := largest.Encode()
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if got, size, readErr := ReadEnvelope(at(path), named(1), ShownBytes); err != nil || readErr != nil || size != MaxEnvelopeBytes || len(got.Result) != ShownBytes || got.Chars() != len(largest.Result) {
		t.Errorf("the largest: %d bytes, %d of %d characters, %v, %v", size, len(got.Result), got.Chars(), err, readErr)
	}
	if err := os.Truncate(path, MaxEnvelopeBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, size, err := ReadEnvelope(at(path), named(1), 0); !errors.Is(err, ErrManual) || size != MaxEnvelopeBytes+1 {
		t.Errorf("too large: %d, %v", size, err)
	}
	if _, _, err := ReadEnvelope(at(path+"x"), named(1), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

// TestSEC_11_ACharacterIsNotCut: however the file comes in pieces, and wherever the bound is.
func TestSEC_11_ACharacterIsNotCut(t *testing.T) {
	const result = "aé☃😀zé☃😀"
	data, err := NewEnvelope(named(1), 1, answered, result, Evidence{}, noon).Encode()
	if err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, int64, error) {
		return io.NopCloser(iotest.OneByteReader(strings.NewReader(string(data)))), int64(len(data)), nil
	}
	for most := range len(result) + 1 {
		got, _, err := ReadEnvelope(open, named(1), most)
		if err != nil || !strings.HasPrefix(result, got.Result) || len(got.Result) > most || most-len(got.Result) >= utf8.UTFMax {
			t.Errorf("at most %d bytes: %q, %v", most, got.Result, err)
		}
	}
}
