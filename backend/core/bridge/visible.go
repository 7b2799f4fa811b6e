package bridge

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// span is a range of code points, with both ends.
type span struct{ from, to rune }

// hidden are the code points that are invisible or change the text direction: formats,
// fillers, bidi controls, tags, variation selectors, noncharacters. isControl covers
// the C0 and C1 controls. The page has the same table in lib/visible.ts.
var hidden = []span{
	{0x00AD, 0x00AD},
	{0x034F, 0x034F},
	{0x061C, 0x061C},
	{0x115F, 0x1160},
	{0x17B4, 0x17B5},
	{0x180B, 0x180F},
	{0x200B, 0x200F},
	{0x2028, 0x202E},
	{0x2060, 0x206F},
	{0x3164, 0x3164},
	{0xD800, 0xDFFF},
	{0xFDD0, 0xFDEF},
	{0xFE00, 0xFE0F},
	{0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0},
	{0xFFF0, 0xFFFB},
	{0xFFFE, 0xFFFF},
	{0x13430, 0x1343F},
	{0x1BCA0, 0x1BCA3},
	{0x1D173, 0x1D17A},
	{0xE0000, 0xE0FFF},
}

// unclear are the further code points that VisibleExact shows: spaces other than
// U+0020, a blank, marks around a number, and private use.
var unclear = []span{
	{0x00A0, 0x00A0},
	{0x0600, 0x0605},
	{0x06DD, 0x06DD},
	{0x070F, 0x070F},
	{0x0890, 0x0891},
	{0x08E2, 0x08E2},
	{0x1680, 0x1680},
	{0x2000, 0x200A},
	{0x202F, 0x202F},
	{0x205F, 0x205F},
	{0x2800, 0x2800},
	{0x3000, 0x3000},
	{0xE000, 0xF8FF},
	{0x110BD, 0x110BD},
	{0x110CD, 0x110CD},
	{0xF0000, 0xFFFFD},
	{0x100000, 0x10FFFD},
}

// pictographs are the code points of emoji.
var pictographs = []span{
	{0x00A9, 0x00A9},
	{0x00AE, 0x00AE},
	{0x203C, 0x203C},
	{0x2049, 0x2049},
	{0x2122, 0x2122},
	{0x2139, 0x2139},
	{0x2190, 0x21FF},
	{0x2300, 0x23FF},
	{0x24C2, 0x24C2},
	{0x25A0, 0x27BF},
	{0x2900, 0x297F},
	{0x2B00, 0x2BFF},
	{0x3030, 0x3030},
	{0x303D, 0x303D},
	{0x3297, 0x3297},
	{0x3299, 0x3299},
	{0x1F000, 0x1FAFF},
}

// ideographs are the characters with variants that a variation selector chooses.
var ideographs = []span{{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0x20000, 0x323AF}}

// joining are the scripts that use joiners, each with its letters.
var joining = []span{
	{0x0620, 0x06D3},
	{0x0710, 0x074F},
	{0x0750, 0x077F},
	{0x08A0, 0x08C9},
	{0x0900, 0x097F},
	{0x0980, 0x09FF},
	{0x0A00, 0x0A7F},
	{0x0A80, 0x0AFF},
	{0x0B00, 0x0B7F},
	{0x0B80, 0x0BFF},
	{0x0C00, 0x0C7F},
	{0x0C80, 0x0CFF},
	{0x0D00, 0x0D7F},
	{0x0D80, 0x0DFF},
	{0x1000, 0x109F},
	{0x1780, 0x17B3},
}

const (
	zeroWidthNonJoiner = 0x200C
	zeroWidthJoiner    = 0x200D
	textStyle          = 0xFE0E
	emojiStyle         = 0xFE0F
	keycap             = 0x20E3
	blackFlag          = 0x1F3F4
	nothing            = -1 // before the first and after the last character
)

// flags are the three flags that Unicode encodes as tags after blackFlag.
var flags = []string{
	"\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
	"\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
	"\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F",
}

// Visible returns the text with every hidden character made visible. This is `\x1b` for
// a control character or an invalid byte, `⟨U+202E⟩` for any other. Line ends and tabs
// stay. Joiners and selectors stay within an emoji or a word that needs them.
func Visible(text string) string { return makeVisible(text, false) }

// VisibleLine is Visible for a single-line text: a line end becomes `\n`, a tab `\t`.
func VisibleLine(text string) string { return makeVisible(OneLine(text), false) }

// VisibleExact is Visible for text to approve: it also shows joiners, selectors,
// carriage returns and spaces other than U+0020, at any position.
func VisibleExact(text string) string { return makeVisible(text, true) }

// OneLine returns the text as one line: it makes line ends and tabs visible and keeps
// every other character.
func OneLine(text string) string {
	if strings.IndexFunc(text, breaksLine) < 0 {
		return text
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case breaksLine(r):
			b.WriteString(nameOf(r))
		default:
			b.WriteString(text[at : at+size]) // an invalid byte stays unchanged
		}
		at += size
	}
	return b.String()
}

func breaksLine(r rune) bool {
	return r >= '\t' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func makeVisible(text string, isExact bool) string {
	if isPlainASCII(text) {
		return text
	}
	var b strings.Builder
	before, previous := rune(nothing), rune(nothing)
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		rest := text[at+size:]
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[at])
		case r == '\r' && !isExact && strings.HasPrefix(rest, "\n"):
			// A line end of Windows is a line end.
		case !isExact && r == blackFlag && flagIn(rest) != "":
			flag := flagIn(rest)
			b.WriteString(text[at:at+size] + flag)
			size += len(flag)
		case isHidden(r) && (isExact || !belongs(before, previous, r, rest)), isExact && within(unclear, r):
			b.WriteString(nameOf(r))
		default:
			b.WriteString(text[at : at+size])
		}
		before, previous = previous, r
		at += size
	}
	return b.String()
}

// isPlainASCII reports whether a text has nothing to make visible, the usual case.
func isPlainASCII(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7F || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7F && r <= 0x9F }

func isHidden(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return isControl(r) || within(hidden, r) || r&0xFFFE == 0xFFFE
}

// nameOf returns the visible form of a hidden character.
func nameOf(r rune) string {
	if isControl(r) {
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf("⟨U+%04X⟩", r)
}

// belongs reports whether a hidden character is part of the emoji or the word around
// it, and changes its display. A second hidden character after it is not.
func belongs(before, previous, r rune, rest string) bool {
	next := rune(nothing)
	if rest != "" {
		next, _ = utf8.DecodeRuneInString(rest)
	}
	switch {
	case r == emojiStyle && (previous >= '0' && previous <= '9' || previous == '#' || previous == '*'):
		return next == keycap
	case r == emojiStyle || r == textStyle:
		return within(pictographs, previous)
	case r >= 0xE0100 && r <= 0xE01EF:
		return within(ideographs, previous)
	case r == zeroWidthJoiner && within(pictographs, next):
		return within(pictographs, previous) || previous == emojiStyle && within(pictographs, before)
	case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
		script := indexWithin(joining, previous)
		return script >= 0 && script == indexWithin(joining, next)
	default:
		return false
	}
}

func flagIn(rest string) string {
	for _, flag := range flags {
		if strings.HasPrefix(rest, flag) {
			return flag
		}
	}
	return ""
}

func within(spans []span, r rune) bool { return indexWithin(spans, r) >= 0 }

// indexWithin returns the index of the span with r, or -1.
func indexWithin(spans []span, r rune) int {
	for i, span := range spans {
		if r >= span.from && r <= span.to {
			return i
		}
	}
	return -1
}

// QuoteLines returns each line of a text to approve as in VisibleExact. It puts the
// mark before each, so that no line imitates one of Bridge's.
func QuoteLines(text, mark string) string {
	return mark + strings.ReplaceAll(VisibleExact(text), "\n", "\n"+mark) + "\n"
}
