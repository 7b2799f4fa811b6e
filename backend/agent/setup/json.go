package setup

import (
	"bytes"
	"encoding/json"

	"bridge/backend/core/hooks"
)

// encode returns value as one line of JSON without HTML escapes.
func encode(value any) []byte { return hooks.Encode(value) }

// indented is [encode] over several lines, for a file.
func indented(value any) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, encode(value), "", "  "); err != nil {
		return []byte("{}") // unreachable: encode writes JSON
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// withMark returns text after its byte order mark, if it had one. The result is
// never nil, which would mean no file.
func withMark(bom, text []byte) []byte { return append(append([]byte{}, bom...), text...) }
