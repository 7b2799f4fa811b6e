package bridge

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// NormalizeName returns a name in the normal form NFC, which session names use. A name
// typed on macOS may be decomposed.
func NormalizeName(name string) string { return norm.NFC.String(name) }

// CheckName fails with Invalid unless name is a valid session name: 1 to 64 letters and
// digits of any script, '.', '_' and '-' (MSG-10, RWM-16).
func CheckName(name string) error { return checkName(NormalizeName(name), isNameRune) }

// CheckPlainName is CheckName for ASCII names, such as those of PCs and configured
// agents.
func CheckPlainName(name string) error { return checkName(name, isPlainNameRune) }

func checkName(name string, isAllowed func(rune) bool) error {
	if name == "" {
		return Errorf(Invalid, "the name must not be empty")
	}
	if utf8.RuneCountInString(name) > MaxNameChars {
		return Errorf(Invalid, "the name is longer than %d characters", MaxNameChars)
	}
	for i, r := range name {
		if !isAllowed(r) || i == 0 && unicode.IsMark(r) {
			return Errorf(Invalid, "the name %q holds %q: use letters, digits, '.', '_' and '-'", name, r)
		}
	}
	return nil
}

func isPlainNameRune(r rune) bool { return r < utf8.RuneSelf && isNameRune(r) }

// isNameRune reports whether a name may have a character. Many scripts write vowels as
// marks. Variation selectors are marks too, but they are invisible.
func isNameRune(r rune) bool {
	switch {
	case isInvisible(r):
		return false
	case unicode.IsLetter(r), unicode.IsDigit(r), r == '.', r == '_', r == '-':
		return true
	case unicode.IsMark(r):
		return !unicode.Is(unicode.Variation_Selector, r) && !unicode.Is(unicode.Me, r) && r != combiningJoiner
	}
	return false
}

// combiningJoiner is U+034F, an invisible mark.
const combiningJoiner = '\u034f'

// isInvisible reports whether a letter or a mark is displayed as an empty place: the
// fillers of Hangul, and unused vowels of Khmer.
func isInvisible(r rune) bool {
	return r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u17b4' || r == '\u17b5'
}

// maxFolderChars limits the folder's part of a default name, so that an appended number
// still fits.
const maxFolderChars = 40

// DefaultName returns `<agent>-<project folder>` (MSG-03), with '-' for every character
// that a name may not have.
func DefaultName(kind AgentKind, cwd string) string {
	cwd = NormalizeName(cwd)
	cwd = strings.TrimRight(strings.ReplaceAll(cwd, `\`, "/"), "/")
	folder := cwd[strings.LastIndexByte(cwd, '/')+1:]
	var b strings.Builder
	chars := 0
	for _, r := range folder {
		if chars++; chars > maxFolderChars {
			break
		}
		if !isNameRune(r) {
			r = '-'
		}
		b.WriteRune(r)
	}
	if strings.Trim(b.String(), "-.") == "" {
		return string(kind) + "-session"
	}
	return string(kind) + "-" + b.String()
}

// CheckText fails with Invalid or TooLarge unless text is valid UTF-8 of 1 to maxChars
// characters. what names it in the error.
func CheckText(what, text string, maxChars int) error {
	if text == "" {
		return Errorf(Invalid, "%s must not be empty", what)
	}
	if !utf8.ValidString(text) {
		return Errorf(Invalid, "%s is not valid UTF-8", what)
	}
	if len(text) > maxChars { // the number of bytes is an upper limit of characters
		if n := utf8.RuneCountInString(text); n > maxChars {
			return Errorf(TooLarge, "%s has %s: at most %d are allowed", what, Counted(n, "character"), maxChars)
		}
	}
	return nil
}

// CheckID fails with Invalid unless id can identify a message, a conversation or a host
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
