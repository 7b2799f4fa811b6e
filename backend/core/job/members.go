package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Millis is a time in Unix milliseconds; 0 is none. Other writers of the file may use
// text (RFC 3339).
type Millis int64

// UnmarshalJSON reads a number or a text. It fails for any other value, and for a text
// that is no RFC 3339 time.
func (m *Millis) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var at time.Time
		if err := json.Unmarshal(data, &at); err != nil {
			return err
		}
		*m = MillisOf(at)
		return nil
	}
	number, err := strconv.ParseFloat(string(data), 64)
	*m = Millis(number)
	return err
}

// Time returns the time; 0 gives the zero time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m))
}

// MillisOf returns a time in Unix milliseconds; the zero time gives 0.
func MillisOf(at time.Time) Millis {
	if at.IsZero() {
		return 0
	}
	return Millis(at.UnixMilli())
}

// members are the members of a JSON object as they were read. Several programs write
// shared files: members that are unknown, unreadable or unchanged are written back byte
// for byte.
type members map[string]json.RawMessage

// decodeMembers reads the object in data into the struct that dst points to, member by
// member. It skips a member of another type.
func decodeMembers(data []byte, dst any) (members, error) {
	var read members
	if err := json.Unmarshal(data, &read); err != nil {
		return nil, err
	}
	for name, field := range fieldsOf(dst) {
		if raw, has := read[name]; has {
			field.Set(decoded(raw, field.Type()))
		}
	}
	return read, nil
}

// decoded returns the value of raw, or the zero value for another type.
func decoded(raw json.RawMessage, want reflect.Type) reflect.Value {
	value := reflect.New(want)
	if json.Unmarshal(raw, value.Interface()) != nil {
		return reflect.Zero(want)
	}
	return value.Elem()
}

// encode writes src, a pointer to a struct, over the members that were read.
func (m members) encode(src any) ([]byte, error) {
	out := maps.Clone(m)
	if out == nil {
		out = members{}
	}
	for name, field := range fieldsOf(src) {
		raw, has := m[name]
		if has && reflect.DeepEqual(decoded(raw, field.Type()).Interface(), field.Interface()) {
			continue // unchanged
		}
		if field.IsZero() {
			delete(out, name)
			continue
		}
		text, err := json.Marshal(field.Interface())
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out.object(fieldOrder(src))
}

// object writes the members: first ours, then the others by name.
func (m members) object(first []string) ([]byte, error) {
	names := slices.Clone(first)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(first, name) {
			names = append(names, name)
		}
	}
	var b bytes.Buffer
	for _, name := range names {
		raw, has := m[name]
		if !has {
			continue
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(raw)
	}
	if b.Len() == 0 {
		return []byte("{}"), nil
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func fieldsOf(pointer any) map[string]reflect.Value {
	value := reflect.ValueOf(pointer).Elem()
	fields := map[string]reflect.Value{}
	for _, field := range reflect.VisibleFields(value.Type()) { // also those of embedded structs
		if name := memberName(field); name != "" {
			fields[name] = value.FieldByIndex(field.Index)
		}
	}
	return fields
}

func fieldOrder(pointer any) []string {
	var names []string
	t := reflect.TypeOf(pointer).Elem()
	for _, field := range reflect.VisibleFields(t) {
		if name := memberName(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func memberName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
