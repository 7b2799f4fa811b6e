package bridge

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
)

func TestMSG_10_Names(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "Z": true, "9": true, ".": true, "..": true, "_": true, "-": true, "claude-app.v2_X": true,
		strings.Repeat("n", 64): true,
		strings.Repeat("n", 65): false,
		"":                      false, " ": false, "a b": false, "a/b": false, `a\b`: false, "a:b": false, "*": false, "a\n": false,
		"a\x00": false, "a\xff": false, "a\u200b": false, "<b>": false, `"`: false,
	} {
		if err := CheckName(name); (err == nil) != ok || err != nil && CodeOf(err) != Invalid {
			t.Errorf("CheckName(%q) = %v, want accepted %t", name, err, ok)
		}
	}
}

func TestMSG_03_DefaultNamesAreValidNames(t *testing.T) {
	for _, tt := range []struct{ cwd, want string }{
		{"/home/me/app", "codex-app"},
		{"/home/me/app///", "codex-app"},
		{`C:\Work\My App`, "codex-My-App"},
		{`C:\Work\`, "codex-Work"},
		{`\\host\share`, "codex-share"},
		{"/", "codex-session"},
		{"", "codex-session"},
		{"/home/..", "codex-session"},
		{"/home/\xff\xfe", "codex-session"},
		{"/x/" + strings.Repeat("long", 30), "codex-" + strings.Repeat("long", 10)},
	} {
		got := DefaultName(Codex, tt.cwd)
		if got != tt.want {
			t.Errorf("DefaultName(%q) = %q, want %q", tt.cwd, got, tt.want)
		}
		for _, kind := range Kinds() {
			name := DefaultName(kind, tt.cwd)
			if err := CheckName(name + "-12345"); err != nil {
				t.Errorf("no room for a number behind %q: %v", name, err)
			}
		}
	}
}

// TestRWM_16_NamesOfEveryScript: letters and digits of every script are kept, in one normal
// form, and nothing that cannot be seen.
func TestRWM_16_NamesOfEveryScript(t *testing.T) {
	for name, ok := range map[string]bool{
		"é": true, "e\u0301": true, "名": true, "сайт": true, "プロジェクト": true, "한글": true, "हिन्दी": true, "ไทย": true, "عربي": true, "٣": true,
		strings.Repeat("名", 64):       true,
		strings.Repeat("名", 65):       false,
		strings.Repeat("e\u0301", 64): true, // 64 characters as they are shown
		"\u0301a":                     false, "a\u200d": false, "a\u202e": false, "a\ufe0f": false, "a\u034f": false, "\u3164": false, "a\u20dd": false,
		"a\u115f": false, "a\u1160": false, "a\uffa0": false, "a\u17b4": false, "a\u17b5": false,
		"🚀": false, "½": false, "名 前": false, "名/前": false, "\U000e0061": false,
	} {
		if err := CheckName(name); (err == nil) != ok || err != nil && CodeOf(err) != Invalid {
			t.Errorf("CheckName(%q) = %v, want accepted %t", name, err, ok)
		}
		if err := CheckPlainName(name); err == nil {
			t.Errorf("CheckPlainName(%q) accepts it", name)
		}
	}
	for cwd, want := range map[string]string{
		"/home/me/über": "codex-über", "/home/me/u\u0308ber": "codex-über", "/home/me/名前": "codex-名前", "/home/me/мой сайт": "codex-мой-сайт",
		"/home/me/🚀": "codex-session", "/home/me/a\u202eb": "codex-a-b", "/x/" + strings.Repeat("名", 100): "codex-" + strings.Repeat("名", 40),
	} {
		name := DefaultName(Codex, cwd)
		if name != want {
			t.Errorf("DefaultName(%q) = %q, want %q", cwd, name, want)
		}
		if err := CheckName(name + "-12345"); err != nil {
			t.Errorf("no room for a number behind %q: %v", name, err)
		}
	}
}

func TestMSG_10_BodyLimits(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Code
	}{
		{"one character", "a", ""},
		{"only white space", " ", ""},
		{"the longest in ASCII", strings.Repeat("a", 100_000), ""},
		{"the longest counts characters, not bytes", strings.Repeat("😀", 100_000), ""},
		{"empty", "", Invalid},
		{"one over in ASCII", strings.Repeat("a", 100_001), TooLarge},
		{"one over in other characters", strings.Repeat("😀", 100_000) + "a", TooLarge},
		{"invalid UTF-8", "a\xff", Invalid},
		{"invalid UTF-8 over the limit", strings.Repeat("\xff", 100_001), Invalid},
	} {
		t.Run("MSG-10 "+tt.name, func(t *testing.T) {
			if err := CheckText("the message", tt.text, MaxBodyChars); CodeOf(err) != tt.want {
				t.Errorf("got %v, want code %q", err, tt.want)
			}
		})
	}
}

func TestMSG_10_TheLongestMessageFitsAFrame(t *testing.T) {
	const longestEscape = len(`\u0000`) // of one character; what is not escaped takes at most 4 bytes
	if need := MaxBodyChars*longestEscape + 64<<10; need > MaxFrameBytes {
		t.Errorf("a message may need %d bytes, a frame holds %d", need, MaxFrameBytes)
	}
}

func TestMSG_10_IDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "0191-uuid": true, `!"#$%&'()*+,/:;<=>?@[\]^{|}~`: true, strings.Repeat("i", 128): true,
		strings.Repeat("i", 129): false, "": false, " ": false, "a b": false, "a\t": false, "a\x7f": false, "é": false, "a\u00a0": false, "\xff": false,
	} {
		if err := CheckID("the id", id); (err == nil) != ok || err != nil && CodeOf(err) != Invalid {
			t.Errorf("CheckID(%q) = %v, want accepted %t", id, err, ok)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, kind := range Kinds() {
		if got, err := ParseKind(string(kind)); err != nil || got != kind {
			t.Errorf("ParseKind(%q) = %q, %v", kind, got, err)
		}
	}
	for _, raw := range []string{"", "Claude", " claude", "owner", "gemini"} { // the owner is no kind that a caller may name
		if got, err := ParseKind(raw); CodeOf(err) != Invalid {
			t.Errorf("ParseKind(%q) = %q, %v", raw, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		code    Code
		message string
		is      []error
	}{
		{"nil", nil, "", "", nil},
		{"foreign", io.EOF, Internal, "EOF", nil},
		{"plain", Errorf(Busy, "too many of %d", 3), Busy, "too many of 3", nil},
		{"with a cause", Errorf(Storage, "the store: %w", io.EOF), Storage, "the store: EOF", []error{io.EOF}},
		{"with two causes", Errorf(Storage, "%w and %w", io.EOF, fs.ErrExist), Storage, "EOF and file already exists", []error{io.EOF, fs.ErrExist}},
		{"with a hidden cause", WithCause(Unavailable, io.EOF, "nobody there"), Unavailable, "nobody there", []error{io.EOF}},
		{"wrapped", fmt.Errorf("doing x: %w", Errorf(Denied, "no")), Denied, "doing x: no", nil},
		{"joined", errors.Join(io.EOF, Errorf(Denied, "no")), Denied, "EOF\nno", []error{io.EOF}},
		{"the outer code counts", Errorf(Conflict, "x: %w", Errorf(Denied, "no")), Conflict, "x: no", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CodeOf(tt.err); got != tt.code {
				t.Errorf("CodeOf = %q, want %q", got, tt.code)
			}
			if tt.err != nil && tt.err.Error() != tt.message {
				t.Errorf("message %q, want %q", tt.err, tt.message)
			}
			for _, cause := range tt.is {
				if !errors.Is(tt.err, cause) {
					t.Errorf("%v is lost", cause)
				}
			}
		})
	}
}
