package bridge

import (
	"strings"
	"unicode/utf8"
)

// CheckName reports whether name may be a session name: 1 to 64 of letters,
// digits, '.', '_' and '-' (MSG-10).
func CheckName(name string) error {
	if name == "" {
		return Errorf(Invalid, "the name must not be empty")
	}
	if len(name) > MaxNameChars {
		return Errorf(Invalid, "the name is longer than %d characters", MaxNameChars)
	}
	for _, r := range name {
		if !nameRune(r) {
			return Errorf(Invalid, "the name %q holds %q: use letters, digits, '.', '_' and '-'", name, r)
		}
	}
	return nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// maxFolderChars bounds the folder's part of a default name, so that a number
// behind it still fits.
const maxFolderChars = 40

// DefaultName returns `<agent>-<project folder>` (MSG-03) with every character
// that a name may not hold replaced by '-'.
func DefaultName(kind AgentKind, cwd string) string {
	cwd = strings.TrimRight(strings.ReplaceAll(cwd, `\`, "/"), "/")
	folder := cwd[strings.LastIndexByte(cwd, '/')+1:]
	var b strings.Builder
	for _, r := range folder {
		if b.Len() == maxFolderChars {
			break
		}
		if !nameRune(r) {
			r = '-'
		}
		b.WriteRune(r)
	}
	if strings.Trim(b.String(), "-.") == "" {
		return string(kind) + "-session"
	}
	return string(kind) + "-" + b.String()
}

// CheckText reports whether text is valid UTF-8 of 1 to maxChars characters.
// what names it in the error.
func CheckText(what, text string, maxChars int) error {
	if text == "" {
		return Errorf(Invalid, "%s must not be empty", what)
	}
	if !utf8.ValidString(text) {
		return Errorf(Invalid, "%s is not valid UTF-8", what)
	}
	if len(text) > maxChars { // bytes bound characters from above
		if n := utf8.RuneCountInString(text); n > maxChars {
			return Errorf(TooLarge, "%s has %d characters: at most %d are allowed", what, n, maxChars)
		}
	}
	return nil
}

// CheckID reports whether id may name a message, a conversation or a host
// session: 1 to 128 printable ASCII characters without a space.
func CheckID(what, id string) error {
	if id == "" {
		return Errorf(Invalid, "%s must not be empty", what)
	}
	if len(id) > MaxIDChars {
		return Errorf(Invalid, "%s is longer than %d characters", what, MaxIDChars)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return Errorf(Invalid, "%s holds a character that is not printable ASCII", what)
		}
	}
	return nil
}
