package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

// encoded encodes a document.
func encoded(d document) func([]byte) ([]byte, error) {
	return func(buf []byte) ([]byte, error) {
		text, err := json.Marshal(d)
		return append(buf, text...), err
	}
}

// payload encodes text.
func payload(text string) func([]byte) ([]byte, error) {
	return func(buf []byte) ([]byte, error) { return append(buf, text...), nil }
}

func frame(size uint32, payload string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, size), payload...)
}

func TestReadFrame(t *testing.T) {
	const limit = 10
	for _, tt := range []struct {
		name string
		data []byte
		want string
		is   error
		code bridge.Code
	}{
		{"one byte", frame(1, "x"), "x", nil, ""},
		{"as large as allowed", frame(10, "0123456789"), "0123456789", nil, ""},
		{"what follows is left", frame(1, "xyz"), "x", nil, ""},
		{"nothing", nil, "", io.EOF, ""},
		{"half a length", []byte{0, 0}, "", io.ErrUnexpectedEOF, ""},
		{"no payload", frame(5, ""), "", io.ErrUnexpectedEOF, ""},
		{"half a payload", frame(5, "ab"), "", io.ErrUnexpectedEOF, ""},
		{"empty", frame(0, ""), "", nil, bridge.TooLarge},
		{"one over", frame(11, "0123456789a"), "", nil, bridge.TooLarge},
		{"the largest length", frame(0xffffffff, "x"), "", nil, bridge.TooLarge},
		{"a length that is negative as a signed number", frame(0x80000000, "x"), "", nil, bridge.TooLarge},
	} {
		t.Run("MSG-10 "+tt.name, func(t *testing.T) {
			got, err := ReadFrame(bufio.NewReader(bytes.NewReader(tt.data)), limit)
			if string(got) != tt.want {
				t.Errorf("payload %q, want %q", got, tt.want)
			}
			switch {
			case tt.code != "" && bridge.CodeOf(err) != tt.code:
				t.Errorf("error %v, want code %q", err, tt.code)
			case tt.code == "" && !errors.Is(err, tt.is):
				t.Errorf("error %v, want %v", err, tt.is)
			case errors.Is(tt.is, io.ErrUnexpectedEOF) && err == io.EOF: //nolint:errorlint // io.EOF itself means a clean end
				t.Error("a torn frame looks like a clean end")
			}
		})
	}
}

func TestMSG_10_ARefusedLengthAllocatesNothing(t *testing.T) {
	head := frame(0xfffffff0, "x")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := ReadFrame(bufio.NewReaderSize(bytes.NewReader(head), 16), 4<<20); err == nil {
			t.Fatal("accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("100 refusals allocated %d bytes", grown)
	}
}

func TestMSG_10_ATooLargeFrameIsNotWritten(t *testing.T) {
	const limit = 10
	if got, err := AppendFrame([]byte("before"), limit, payload(`"12345678"`)); err != nil || string(got) != "before\x00\x00\x00\x0a\"12345678\"" {
		t.Errorf("as large as allowed: %q, %v", got, err)
	}
	if got, err := AppendFrame([]byte("before"), limit, payload(`"123456789"`)); bridge.CodeOf(err) != bridge.TooLarge || got != nil {
		t.Errorf("one over: got %d bytes, %v", len(got), err)
	}
}

// document is a frame as those are that programs of Bridge send each other: some
// of it is for whoever passes it on, the rest is not looked at.
type document struct {
	ID    int64           `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	Error *bridge.Error   `json:"error,omitempty"`
}

func TestParse(t *testing.T) {
	if got, err := Parse[document]([]byte(`{"id":7,"data":[1, 2]}`)); err != nil || got.ID != 7 || string(got.Data) != "[1, 2]" {
		t.Errorf("a document: %+v, %v", got, err)
	}
	for _, payload := range []string{"", "{", "nope", "[]", `{"id":"7"}`, `{"id":7} {}`, `{"id":7,"name":1}`} {
		got, err := Parse[document]([]byte(payload))
		if bridge.CodeOf(err) != bridge.Invalid || got.ID != 0 {
			t.Errorf("%q: %+v, %v; want nothing and code %q", payload, got, err, bridge.Invalid)
		}
	}
}

// fuzzLimit is far from the size of any seed, so that both sides of it are tried.
const fuzzLimit = 1 << 12

// FuzzFrames reads whatever comes as a row of frames: it never panics, no
// payload is over the limit, and every frame that is understood survives being
// written and read again.
func FuzzFrames(f *testing.F) {
	for _, d := range []document{
		{ID: 7, Name: "send", Data: json.RawMessage(`{"to":"a"}`)},
		{ID: 7, Data: json.RawMessage(`null`)},
		{Name: "mail", Data: json.RawMessage(`[1,{}]`)},
		{ID: 9, Error: bridge.Errorf(bridge.Busy, "no")},
	} {
		data, err := AppendFrame(nil, fuzzLimit, encoded(d))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(append(data, data...))
	}
	f.Add(frame(0, ""))
	f.Add(frame(0xffffffff, "{}"))
	f.Add(frame(4, "null"))
	f.Add(frame(9, `{"id":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bufio.NewReader(bytes.NewReader(data))
		consumed := 0
		for {
			payload, err := ReadFrame(reader, fuzzLimit)
			if len(payload) > fuzzLimit || cap(payload) > fuzzLimit {
				t.Fatalf("a payload of %d bytes (%d allocated)", len(payload), cap(payload))
			}
			if err != nil {
				if err == io.EOF && consumed != len(data) { //nolint:errorlint // io.EOF itself means a clean end
					t.Fatalf("a clean end after %d of %d bytes", consumed, len(data))
				}
				return
			}
			consumed += 4 + len(payload)
			checkStable(t, payload)
		}
	})
}

// checkStable writes and reads what is understood of a payload twice.
func checkStable(t *testing.T, payload []byte) {
	t.Helper()
	first, err := Parse[document](payload)
	if err != nil {
		if bridge.CodeOf(err) != bridge.Invalid {
			t.Fatalf("refused with %v", err)
		}
		return
	}
	// Escapes may make it longer than what was read.
	const limit = 10 * fuzzLimit
	again, err := AppendFrame(nil, limit, encoded(first))
	if err != nil {
		t.Fatalf("write %+v: %v", first, err)
	}
	read, err := ReadFrame(bufio.NewReader(bytes.NewReader(again)), limit)
	if err != nil {
		t.Fatalf("read %q: %v", again, err)
	}
	second, err := Parse[document](read)
	if err != nil {
		t.Fatalf("parse %q: %v", read, err)
	}
	third, err := AppendFrame(nil, limit, encoded(second))
	if err != nil || !bytes.Equal(again, third) {
		t.Fatalf("not stable (%v):\n%s", err, cmp.Diff(string(again), string(third)))
	}
}
