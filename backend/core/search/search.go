// Package search holds the rules of full-text search: how what a person typed
// becomes words and phrases, and how a hit is shown. It does no I/O: the store
// keeps the index.
package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"bridge/backend/core/bridge"
)

// Kind is what a hit is.
type Kind string

// The kinds that are searched.
const (
	Message  Kind = "message"
	Decision Kind = "decision"
	Run      Kind = "run" // what was said in a delegated job's runs
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{Message, Decision, Run} }

// ParseKind reads one of kinds, at least two; "" asks for all of them.
func ParseKind(raw string, kinds []Kind) ([]Kind, error) {
	if raw == "" {
		return kinds, nil
	}
	if !slices.Contains(kinds, Kind(raw)) {
		names := string(kinds[0])
		for _, kind := range kinds[1 : len(kinds)-1] {
			names += ", " + string(kind)
		}
		return nil, bridge.Errorf(bridge.Invalid, "kind must be %s or %s", names, kinds[len(kinds)-1])
	}
	return []Kind{Kind(raw)}, nil
}

// maxPhrases bounds the words and phrases of one question.
const maxPhrases = 32

// Query is what is looked for: every phrase must be there, in any order. A
// phrase is one word, or several that stand side by side.
type Query struct{ phrases [][]string }

// Parse reads what a person typed. Words in double quotes stand side by side;
// so do the parts of a word like foo-bar. Everything that is no letter, number
// or mark only separates: no text is a syntax error, but one without a word is
// refused.
func Parse(typed string) (Query, error) {
	if err := bridge.CheckText("the query", typed, bridge.MaxQueryChars); err != nil {
		return Query{}, err
	}
	var q Query
	for i, part := range strings.Split(typed, `"`) {
		pieces := []string{part}
		if i%2 == 0 { // outside quotes
			pieces = strings.Fields(part)
		}
		for _, piece := range pieces {
			if tokens := wordsOf(piece); len(tokens) > 0 {
				q.phrases = append(q.phrases, tokens)
			}
		}
	}
	if len(q.phrases) == 0 {
		return Query{}, bridge.Errorf(bridge.Invalid, "the query holds no word: full-text search finds letters and numbers")
	}
	if len(q.phrases) > maxPhrases {
		return Query{}, bridge.Errorf(bridge.Invalid, "the query has %s: at most %d are allowed", bridge.Counted(len(q.phrases), "word"), maxPhrases)
	}
	return q, nil
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !inWord(r) })
}

// inWord reports whether r is part of a word, as SQLite's unicode61 has it.
func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) }

// Phrases are the query's phrases, each as a query of its own.
func (q Query) Phrases() []Query {
	each := make([]Query, len(q.phrases))
	for i := range q.phrases {
		each[i] = Query{q.phrases[i : i+1]}
	}
	return each
}

// Words are the words of all phrases, each as a query of its own.
func (q Query) Words() []Query {
	var each []Query
	for _, phrase := range q.phrases {
		for i := range phrase {
			each = append(each, Query{[][]string{phrase[i : i+1]}})
		}
	}
	return each
}

// All asks for what fits every one of the queries.
func All(queries []Query) Query {
	var all Query
	for _, q := range queries {
		all.phrases = append(all.phrases, q.phrases...)
	}
	return all
}

// FTS5 is the query in SQLite's language. Only words and our own quotes are in
// it, so that it always has the right form.
func (q Query) FTS5() string {
	quoted := make([]string, len(q.phrases))
	for i, phrase := range q.phrases {
		quoted[i] = `"` + strings.Join(phrase, " ") + `"`
	}
	return strings.Join(quoted, " AND ")
}

// Part is a piece of a snippet; Hit says that it is what was looked for. The
// text is plain: whoever shows it escapes it.
type Part struct {
	Text string `json:"text"`
	Hit  bool   `json:"hit"`
}

// Plain is a snippet without its marks.
func Plain(snippet []Part) string {
	var text strings.Builder
	for _, part := range snippet {
		text.WriteString(part.Text)
	}
	return text.String()
}

// The size of a snippet in characters, and how many of them stand before its
// first hit.
const (
	snippetChars = 240
	snippetLead  = 60
)

// Snippet cuts the piece of text around the first hit out and marks the hits in
// it. White space becomes single spaces; "…" stands for what is left out.
func (q Query) Snippet(text string) []Part {
	text = strings.Join(strings.Fields(text), " ")
	spans := q.find(words(text))
	from, to := window(text, spans)
	var parts []Part
	add := func(piece string, hit bool) {
		if piece != "" {
			parts = append(parts, Part{piece, hit})
		}
	}
	at, lead, rest := from, "", ""
	if from > 0 {
		lead = "…"
	}
	if to < len(text) {
		rest = "…"
	}
	for _, s := range spans {
		if s.from < at || s.to > to {
			continue
		}
		add(lead+text[at:s.from], false)
		add(text[s.from:s.to], true)
		at, lead = s.to, ""
	}
	add(lead+text[at:to]+rest, false)
	return parts
}

// span is a piece of a text, in bytes.
type span struct{ from, to int }

// word is a word of a text, folded, and where it stands.
type word struct {
	span
	folded string
}

func words(text string) []word {
	var found []word
	start := -1
	for i, r := range text + " " {
		switch in := inWord(r); {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			found = append(found, word{span{start, i}, fold(text[start:i])})
			start = -1
		}
	}
	return found
}

// fold makes a word comparable: lower case, without diacritics.
func fold(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if !plain {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	return strings.ToLower(text)
}

// find returns where the phrases stand, in order and without overlaps.
func (q Query) find(text []word) []span {
	phrases := make([][]string, len(q.phrases))
	for i, phrase := range q.phrases {
		for _, w := range phrase {
			phrases[i] = append(phrases[i], fold(w))
		}
	}
	var found []span
	for i := 0; i < len(text); i++ {
		longest := 0
		for _, phrase := range phrases {
			if len(phrase) > longest && startsWith(text[i:], phrase) {
				longest = len(phrase)
			}
		}
		if longest > 0 {
			found = append(found, span{text[i].from, text[i+longest-1].to})
			i += longest - 1
		}
	}
	return found
}

func startsWith(text []word, phrase []string) bool {
	if len(text) < len(phrase) {
		return false
	}
	for i, w := range phrase {
		if text[i].folded != w {
			return false
		}
	}
	return true
}

// window chooses what of the text is shown, in bytes.
func window(text string, hits []span) (from, to int) {
	if len(hits) > 0 {
		from = back(text, hits[0].from, snippetLead)
	}
	to = forward(text, from, snippetChars)
	if len(hits) > 0 {
		to = max(to, hits[0].to)
	}
	return from, to
}

// back goes at most chars characters back, and from there on to the beginning of
// a word.
func back(text string, at, chars int) int {
	from := at
	for range chars {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from == 0 {
		return 0
	}
	if space := strings.IndexByte(text[from:at], ' '); space >= 0 {
		return from + space + 1
	}
	return from
}

// forward goes at most chars characters on, and from there back to the end of a
// word.
func forward(text string, at, chars int) int {
	end := at
	for range chars {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	if end == len(text) {
		return end
	}
	if space := strings.LastIndexByte(text[at:end], ' '); space > 0 {
		return at + space
	}
	return end
}
