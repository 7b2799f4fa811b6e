package fulltext

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"bridge/backend/platform/sqlitex"
)

// groupDocuments is how many documents make a group. Until then their texts are read one
// by one, which costs a microsecond each.
const groupDocuments = 4096

// runeBits is the width of a character in a trigram.
const runeBits = 21

// trigramSize is the number of characters in a trigram.
const trigramSize = 3

// eachTrigram calls with for every three consecutive characters of the text, followed by
// two zeros. So every one and every two of its characters begin a trigram.
func eachTrigram(text string, with func(trigram int64)) {
	const mask = 1<<(trigramSize*runeBits) - 1
	var trigram int64
	seen := 0
	next := func(r rune) {
		trigram = (trigram<<runeBits | int64(r)) & mask
		if seen++; seen >= trigramSize {
			with(trigram)
		}
	}
	for _, r := range text {
		next(r)
	}
	for range trigramSize - 1 {
		next(0)
	}
}

// postings is the list of a group's documents that contain a trigram, while the group is
// built. It holds the differences of their positions.
type postings struct {
	next  uint64 // the last position plus one
	bytes []byte
	count int
}

// trigrams collects the postings of a group.
type trigrams map[int64]*postings

func (g trigrams) add(position int, text string) {
	eachTrigram(text, func(trigram int64) {
		p := g[trigram]
		if p == nil {
			p = &postings{}
			g[trigram] = p
		}
		at := uint64(position) + 1
		if p.next == at {
			return // this position is in the list
		}
		p.bytes = binary.AppendUvarint(p.bytes, at-p.next-1)
		p.next = at
		p.count++
	})
}

// positions is a set of positions in a group.
type positions []uint64

func newPositions(size int) positions { return make(positions, (size+63)/64) }

func bitmapBytes(size int) int { return 8 * len(newPositions(size)) }

// encoded returns the shorter of the two forms, list or bitmap. Their lengths distinguish
// them: a list is always shorter than the bitmap of its group.
func (p *postings) encoded(size int) []byte {
	if len(p.bytes) < bitmapBytes(size) {
		return p.bytes
	}
	set := newPositions(size)
	set.addList(p.bytes)
	bits := make([]byte, 0, bitmapBytes(size))
	for _, trigram := range set {
		bits = binary.LittleEndian.AppendUint64(bits, trigram)
	}
	return bits
}

// add adds the output of encoded to the set.
func (s positions) add(encoded []byte) {
	if len(encoded) < 8*len(s) {
		s.addList(encoded)
		return
	}
	for i := range s {
		s[i] |= binary.LittleEndian.Uint64(encoded[8*i:])
	}
}

func (s positions) addList(list []byte) {
	at := uint64(0)
	for len(list) > 0 {
		difference, n := binary.Uvarint(list)
		if n <= 0 || at+difference >= uint64(64*len(s)) {
			return // not a list of encoded
		}
		at += difference
		s[at/64] |= 1 << (at % 64)
		at, list = at+1, list[n:]
	}
}

func (s positions) keep(other positions) {
	for i := range s {
		s[i] &= other[i]
	}
}

// group creates the next group when there are enough documents for it: all documents
// without a group, with the cursors of the sources. It is one transaction.
func (x *Index) group(ctx context.Context) (made bool, err error) {
	documents, err := x.documents(ctx)
	if err != nil || len(documents) == 0 {
		return false, err
	}
	gathered, size := trigrams{}, int(documents[len(documents)-1].doc-documents[0].doc)+1
	var deleted []int64
	const chunk = 64
	for some := range slices.Chunk(documents, chunk) {
		pace := x.pace()
		texts, err := x.texts(ctx, some)
		if err != nil {
			return false, err
		}
		for _, m := range some {
			text, exists := texts[m.id]
			if !exists {
				deleted = append(deleted, m.doc)
				continue
			}
			gathered.add(int(m.doc-documents[0].doc), text)
		}
		if err := pace.rest(ctx); err != nil {
			return false, err
		}
	}
	return true, x.write(func(t *sqlitex.Tx) error { return x.putGroup(ctx, t, documents, deleted, gathered, size) })
}

// document is a document of a group.
type document struct {
	doc int64
	id  string
	at  int64
}

// documents returns the documents of the next group, none while there are too few.
func (x *Index) documents(ctx context.Context) (documents []document, err error) {
	const behind = "FROM search_documents WHERE doc > (SELECT ifnull(max(last), -1) FROM search_groups)"
	enough, err := x.file.tx.Exists("SELECT EXISTS (SELECT 1 "+behind+" LIMIT 1 OFFSET ?1)", x.enough-1)
	if err != nil || !enough {
		return nil, err
	}
	rows, err := x.file.tx.Query(ctx, "SELECT doc, id, at "+behind+" ORDER BY doc")
	return documents, sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var m document
		err := rows.Scan(&m.doc, &m.id, &m.at)
		documents = append(documents, m)
		return err
	})
}

// texts returns the bodies of the given messages by id, from the store and the archive.
func (x *Index) texts(ctx context.Context, documents []document) (map[string]string, error) {
	ids := make([]string, len(documents))
	for i, m := range documents {
		ids[i] = m.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("listing message ids: %w", err)
	}
	texts := make(map[string]string, len(ids))
	ask := func(v View) error {
		rows, err := v.Query(ctx, sqlitex.UnionAll(bodies(v, "CAST(ifnull(m.body, '') AS TEXT)", "true")), string(list))
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var id, text string
			err := rows.Scan(&id, &text)
			texts[id] = text
			return err
		})
	}
	return texts, x.everywhere(ctx, ask)
}

// bodies returns queries for ids and an expression of the messages in the JSON list ?1.
func bodies(v View, what, where string) (selects []string) {
	for _, table := range messageTables(v) {
		selects = append(selects, "SELECT m.id, "+what+" FROM json_each(?1) wanted CROSS JOIN "+table+" m ON m.id = wanted.value WHERE "+where)
	}
	return selects
}

func messageTables(v View) (names []string) {
	for _, name := range []string{"messages", "archived_messages"} {
		if v.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// everywhere runs ask on the store and then on its archive: a message that moves
// meanwhile is seen at least once.
func (x *Index) everywhere(ctx context.Context, ask func(View) error) error {
	for _, archive := range []bool{false, true} {
		err := x.store.Read(ctx, archive, func(v View) error {
			if len(messageTables(v)) == 0 {
				return nil
			}
			return ask(v)
		})
		if err != nil {
			return ofSource(err)
		}
	}
	return nil
}

// putGroup writes a group. It removes a document whose message the store lacks, as after
// the restore of an older state or without its archive. Then it resets all cursors: if
// the message returns, it gets a new number.
func (x *Index) putGroup(ctx context.Context, t *sqlitex.Tx, documents []document, deleted []int64, gathered trigrams, size int) error {
	first, last := documents[0].doc, documents[len(documents)-1].doc
	oldest, newest, ordered := int64(math.MaxInt64), int64(math.MinInt64), true
	for _, m := range documents {
		ordered = ordered && m.at >= newest
		oldest, newest = min(oldest, m.at), max(newest, m.at)
	}
	if len(deleted) > 0 {
		if _, err := t.Exec("DELETE FROM search_upto"); err != nil {
			return err
		}
	}
	_, err := t.Exec(`INSERT INTO search_groups (last, first, oldest, newest, in_order, upto)
		SELECT ?1, ?2, ?3, ?4, ?5, (SELECT json_group_object(source, json_array(row, id)) FROM search_upto)`, last, first, oldest, newest, ordered)
	if err != nil {
		return err
	}
	for _, doc := range deleted {
		if _, err := t.Exec("DELETE FROM search_documents WHERE doc = ?1", doc); err != nil {
			return err
		}
	}
	all := make([]int64, 0, len(gathered))
	for trigram := range gathered {
		all = append(all, trigram)
	}
	slices.Sort(all)
	for some := range slices.Chunk(all, 256) {
		pace := x.pace()
		for _, trigram := range some {
			if _, err := t.Exec("INSERT INTO search_grams (last, gram, docs) VALUES (?1, ?2, ?3)", last, trigram, gathered[trigram].encoded(size)); err != nil {
				return err
			}
		}
		if err := pace.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pattern is the condition of a piece of text on a group: all of some trigrams, or for a
// piece of one or two characters, any trigram between two.
type pattern struct {
	all      []int64
	from, to int64
}

// maxTrigrams limits how many trigrams of a long piece are looked up.
const maxTrigrams = 16

func patternOf(text string) pattern {
	n := utf8.RuneCountInString(text)
	if n < trigramSize {
		var prefix int64
		for _, r := range text {
			prefix = prefix<<runeBits | int64(r)
		}
		rest := runeBits * (trigramSize - n)
		return pattern{from: prefix << rest, to: (prefix+1)<<rest - 1}
	}
	var all []int64
	eachTrigram(text, func(trigram int64) { all = append(all, trigram) })
	all = all[:n-trigramSize+1] // without those that include the end
	slices.Sort(all)
	all = slices.Compact(all)
	if step := (len(all) + maxTrigrams - 1) / maxTrigrams; step > 1 {
		for i := 0; i*step < len(all); i++ {
			all[i] = all[i*step]
		}
		all = all[:(len(all)+step-1)/step]
	}
	return pattern{all: all}
}
