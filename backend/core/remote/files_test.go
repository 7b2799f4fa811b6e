package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"bridge/backend/core/bridge"
)

const someID = "5f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1aa"

var someSum = strings.Repeat("0a", 32)

func TestRMT_20_OnlyPortablePathsAreTaken(t *testing.T) {
	for _, path := range []string{
		"a", "a/b", ".hidden", "a b/c.txt", "größe", "会議/メモ.md", "a.b.c", "con1", "console", "COM10", "lpt", "nul_", "-rf", "~", "$HOME", "a'b", "...a",
		strings.Repeat("x", 255), strings.Repeat("x/", 31) + "x", strings.Repeat("x", 200) + strings.Repeat("/"+strings.Repeat("y", 199), 4),
	} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "./a", "a/./b", `a\b`, `..\a`, `C:\a`, "C:a", "a:b", `\\server\x`,
		"a\x00b", "a\nb", "a\x1b[2J", "a\x7f", "a<b", "a>b", `a"b`, "a|b", "a?b", "a*b", "\xff", "a\ufffd", "\ufeffa", "a\u202egpj.exe", "a\u2066b", "a\u200fb",
		"a.", "a ", "a /b", "a./b", "...", "CON", "con", "Con.txt", "a/nul", "NUL.tar.gz", "aux.", "COM1", "com9.log", "LPT0", "com¹", "LPT³.x", "CONIN$", "conout$", "CLOCK$", "nul .txt",
		strings.Repeat("x", 256), strings.Repeat("x/", 32) + "x", strings.Repeat("x", 201) + strings.Repeat("/"+strings.Repeat("y", 199), 4),
	} {
		if err := CheckPath(path); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func manifestOf(paths ...string) (m Manifest) {
	for _, path := range paths {
		m.Files = append(m.Files, FileEntry{Path: path, Bytes: 1, SHA256: someSum})
	}
	return m
}

func TestRMT_20_NoTwoNamesAreOneAnywhere(t *testing.T) {
	for _, tt := range []struct {
		paths []string
		fit   bool
	}{
		{[]string{"a", "b", "sub/a", "sub/b"}, true},
		{[]string{"a", "a"}, false},
		{[]string{"README", "readme"}, false},
		{[]string{"Sub/a", "sub/b"}, false},        // two folders that are one
		{[]string{"sub/a", "sub/b", "sub"}, false}, // a file in the place of a folder
		{[]string{"sub", "sub/a"}, false},
		{[]string{"é", "e\u0301"}, false},
		{[]string{"É", "e\u0301"}, false},
		{[]string{"K", "\u212a"}, false}, // the Kelvin sign
		{[]string{"ſ", "s"}, false},
		{[]string{"ﬁ", "fi"}, false},
	} {
		if _, err := manifestOf(tt.paths...).Encode(); (err == nil) != tt.fit || err != nil && bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%q: %v", tt.paths, err)
		}
	}
	if _, err := manifestOf("a", "a").Encode(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the same name twice: %v", err)
	}
}

func TestRMT_20_AManifestIsWhatWasOffered(t *testing.T) {
	encoded, err := manifestOf("a", "b/c").Encode()
	if err != nil {
		t.Fatal(err)
	}
	offer := manifestOf("a", "b/c").Offer(encoded)
	if offer.Entries != 2 || offer.Bytes != 2 || offer.Total() != int64(len(encoded))+2 {
		t.Errorf("offered as %+v", offer)
	}
	if _, err := ParseManifest(encoded, offer); err != nil {
		t.Error(err)
	}
	refused := func(what string, data []byte, change func(*FileOffer)) {
		t.Helper()
		offer := Manifest{}.Offer(data)
		offer.Entries, offer.Bytes = 2, 2
		change(&offer)
		if _, err := ParseManifest(data, offer); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	refused("another checksum", encoded, func(o *FileOffer) { o.SHA256 = someSum })
	refused("fewer files than offered", encoded, func(o *FileOffer) { o.Entries = 3 })
	refused("more bytes than offered", encoded, func(o *FileOffer) { o.Bytes = 1 })
	refused("no file", []byte(`{"files":[]}`), func(*FileOffer) {})
	for what, edit := range map[string][2]string{
		"a way out":          {`"b/c"`, `"../c"`},
		"an unknown member":  {`"path":"a"`, `"mode":511,"path":"a"`},
		"a negative size":    {`"bytes":1`, `"bytes":-1`},
		"a size that wraps":  {`"bytes":1`, `"bytes":9223372036854775807`},
		"a short checksum":   {someSum, someSum[2:]},
		"a large one":        {someSum, strings.ToUpper(someSum)},
		"the same name":      {`"b/c"`, `"A"`},
		"a member twice":     {`"path":"a"`, `"path":"a","path":"a"`},
		"something after it": {"]}", "]} {}"},
	} {
		data := bytes.Replace(encoded, []byte(edit[0]), []byte(edit[1]), 1)
		if bytes.Equal(data, encoded) {
			t.Fatalf("%s changes nothing", what)
		}
		refused(what, data, func(*FileOffer) {})
	}
	many := make([]string, 4097)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if _, err := manifestOf(many[:4096]...).Encode(); err != nil {
		t.Errorf("4,096 files: %v", err)
	}
	if _, err := manifestOf(many...).Encode(); bridge.CodeOf(err) != bridge.TooLarge {
		t.Errorf("4,097 files: %v", err)
	}
}

func TestRMT_20_TheOwnerSaysWhoAndHowMuch(t *testing.T) {
	for _, tt := range []struct {
		name    string
		policy  Policy
		allowed bool
	}{
		{"nothing is said", Policy{}, false},
		{"links are off", Policy{Files: Files{AllowPeers: []string{"laptop"}}}, false},
		{"another PC", Policy{Enabled: true, Files: Files{AllowPeers: []string{"Laptop", "desk"}}}, false},
		{"jobs only", Policy{Enabled: true, RemoteJobs: RemoteJobs{Enabled: true, AllowPeers: []string{"laptop"}}}, false},
		{"allowed", Policy{Enabled: true, Files: Files{AllowPeers: []string{"laptop"}}}, true},
	} {
		err := tt.policy.AllowFiles("laptop")
		if (err == nil) != tt.allowed || err != nil && bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, tt := range []struct {
		limits  Files
		entries int
		bytes   int64
		fits    bool
	}{
		{Files{}, 4096, 8589934592, true},
		{Files{}, 4097, 1, false},
		{Files{}, 1, 8589934593, false},
		{Files{MaxBytes: 10, MaxEntries: 2}, 2, 10, true},
		{Files{MaxBytes: 10}, 1, 11, false},
		{Files{MaxEntries: 2}, 3, 1, false},
	} {
		err := tt.limits.AllowOffer(FileOffer{Entries: tt.entries, Bytes: tt.bytes})
		if (err == nil) != tt.fits || err != nil && bridge.CodeOf(err) != bridge.TooLarge {
			t.Errorf("%d files of %d bytes for %+v: %v", tt.entries, tt.bytes, tt.limits, err)
		}
	}
	if got := (Files{}).WithDefaults(); got.AtOnce != 4 {
		t.Errorf("at once: %d", got.AtOnce)
	}
	for _, bad := range []Files{{MaxBytes: -1}, {MaxEntries: -1}, {AtOnce: -1}, {MaxEntries: 4097}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestRMT_20_FramesOfATransferAreChecked(t *testing.T) {
	offer := `"offer":{"entries":1,"bytes":2,"manifestBytes":3,"sha256":"` + someSum + `"}`
	for _, tt := range []struct {
		payload string
		body    int
		fits    bool
	}{
		{`{"kind":"offer","id":"` + someID + `",` + offer + `}`, 0, true},
		{`{"kind":"offer","id":"` + someID + `",` + offer + `,"later":{"x":1}}`, 0, true}, // of a later release
		{`{"kind":"offer","id":"` + someID + `"}`, 0, false},
		{`{"kind":"offer","id":"` + someID + `",` + offer + `}`, 1, false},
		{`{"kind":"offer","id":"` + someID + `",` + strings.Replace(offer, `"entries":1`, `"entries":0`, 1) + `}`, 0, false},
		{`{"kind":"offer","id":"` + someID + `",` + strings.Replace(offer, `"bytes":2`, `"bytes":-2`, 1) + `}`, 0, false},
		{`{"kind":"offer","id":"` + someID + `",` + strings.Replace(offer, `"manifestBytes":3`, `"manifestBytes":8388609`, 1) + `}`, 0, false},
		{`{"kind":"chunk","id":"` + someID + `","at":5}`, 262144, true},
		{`{"kind":"chunk","id":"` + someID + `","at":5}`, 262145, false},
		{`{"kind":"chunk","id":"` + someID + `","at":5}`, 0, false},
		{`{"kind":"chunk","id":"` + someID + `","at":-5}`, 9, false},
		{`{"kind":"ack","id":"` + someID + `","at":5}`, 0, true},
		{`{"kind":"done","id":"` + someID + `"}`, 0, true},
		{`{"kind":"refuse","id":"` + someID + `"}`, 0, false},
		{`{"kind":"refuse","id":"` + someID + `","error":{"code":"denied","message":"no"}}`, 0, true},
		{`{"kind":"run","id":"` + someID + `"}`, 0, false},
		{`{"kind":"done","id":"../../x"}`, 0, false},
		{`{"kind":"done","id":"{` + someID + `}"}`, 0, false},
		{`{"kind":"done","id":"urn:uuid:` + someID + `"}`, 0, false},
		{`{"kind":"done","id":"` + strings.ToUpper(someID) + `"}`, 0, false},
		{`{"kind":"done","kind":"ack","id":"` + someID + `"}`, 0, false},
		{`null`, 0, false},
		{``, 0, false},
	} {
		if _, err := ParseFileFrame([]byte(tt.payload), tt.body); (err == nil) != tt.fits {
			t.Errorf("%s with %d bytes: %v", tt.payload, tt.body, err)
		}
	}
	frame, err := ParseFileFrame([]byte(`{"kind":"refuse","id":"`+someID+`","error":{"code":"denied","message":"a\u001b[2Jb\u202e`+strings.Repeat("x", 3000)+`"}}`), 0)
	if err != nil || strings.ContainsFunc(frame.Error.Message, unicode.IsControl) || strings.Contains(frame.Error.Message, "\u202e") || len(frame.Error.Message) > 2010 {
		t.Errorf("it says %q, %v", frame.Error, err)
	}
}

// FuzzFileFrame: whatever comes, what is taken is as it has to be.
func FuzzFileFrame(f *testing.F) {
	f.Add([]byte(`{"kind":"offer","id":"`+someID+`","offer":{"entries":1,"bytes":2,"manifestBytes":3,"sha256":"`+someSum+`"}}`), 0)
	f.Add([]byte(`{"kind":"chunk","id":"`+someID+`","at":262144}`), 262144)
	f.Add([]byte(`{"kind":"refuse","id":"`+someID+`","error":{"code":"denied","message":"no"}}`), 0)
	f.Fuzz(func(t *testing.T, payload []byte, body int) {
		frame, err := ParseFileFrame(payload, body)
		if err != nil {
			return
		}
		if len(frame.ID) != 36 || strings.Trim(frame.ID, "0123456789abcdef-") != "" || frame.At < 0 || body > 262144 || (body > 0) != (frame.Kind == FileChunk) {
			t.Errorf("taken: %+v with %d bytes", frame, body)
		}
		if frame.Kind == OfferFiles && (frame.Offer.Total() <= 0 || frame.Offer.Entries <= 0) {
			t.Errorf("offered: %+v", frame.Offer)
		}
		again, err := frame.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseFileFrame(again, body); err != nil {
			t.Errorf("%s came back as %s: %v", payload, again, err)
		}
	})
}

// FuzzManifest: whatever comes, what is taken stays below its folder and is one file
// for each name, whatever the file system.
func FuzzManifest(f *testing.F) {
	for _, m := range []Manifest{manifestOf("a"), manifestOf("a", "b/c"), manifestOf("会議/a b.txt", ".x")} {
		data, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"files":[{"path":"../a","bytes":1,"sha256":"` + someSum + `"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var guess Manifest
		_ = json.Unmarshal(data, &guess) // as an offer of a hostile PC would tell it
		offer := guess.Offer(data)
		m, err := ParseManifest(data, offer)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, file := range m.Files {
			lower := strings.ToLower(file.Path)
			if seen[lower] || strings.HasPrefix(file.Path, "/") || strings.Contains("/"+file.Path+"/", "/../") || strings.ContainsAny(file.Path, "\\:\x00\n") || file.Bytes < 0 {
				t.Errorf("taken: %q", file.Path)
			}
			seen[lower] = true
		}
	})
}

func TestRMT_20_LimitsOfFilesAtTheirBounds(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   Files
		ok   bool
	}{
		{"none", Files{}, true},
		{"a negative size", Files{MaxBytes: -1}, false},
		{"a negative number", Files{MaxEntries: -1}, false},
		{"fewer than none at once", Files{AtOnce: -1}, false},
		{"the most entries", Files{MaxBytes: 1, MaxEntries: 4096, AtOnce: 1}, true},
		{"one more", Files{MaxEntries: 4097}, false},
	} {
		if err := tt.of.Check(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*FileOffer)
		ok     bool
	}{
		{"the least", func(*FileOffer) {}, true},
		{"the most", func(o *FileOffer) { o.Bytes, o.ManifestBytes = usualTotal, maxManifestBytes }, true},
		{"no entry", func(o *FileOffer) { o.Entries = 0 }, false},
		{"a negative size", func(o *FileOffer) { o.Bytes = -1 }, false},
		{"a byte too many", func(o *FileOffer) { o.Bytes = usualTotal + 1 }, false},
		{"no manifest", func(o *FileOffer) { o.ManifestBytes = 0 }, false},
		{"a manifest that is too long", func(o *FileOffer) { o.ManifestBytes = maxManifestBytes + 1 }, false},
		{"no checksum", func(o *FileOffer) { o.SHA256 = "" }, false},
	} {
		offer := FileOffer{Entries: 1, ManifestBytes: 1, SHA256: someSum}
		tt.change(&offer)
		if got := offer.isProper(); got != tt.ok {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	for bytes, ok := range map[int64]bool{0: true, usualTotal: true, usualTotal + 1: false, -1: false} {
		m := Manifest{Files: []FileEntry{{Path: "a", Bytes: bytes, SHA256: someSum}}}
		if _, err := m.Encode(); (err == nil) != ok {
			t.Errorf("a file of %d bytes: %v", bytes, err)
		}
	}
}
