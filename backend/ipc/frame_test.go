package ipc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/bridge"
)

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
			got, err := readFrame(bufio.NewReader(bytes.NewReader(tt.data)), limit)
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
		if _, err := readFrame(bufio.NewReaderSize(bytes.NewReader(head), 16), bridge.MaxFrameBytes); err == nil {
			t.Fatal("accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("100 refusals allocated %d bytes", grown)
	}
}

func TestMSG_10_ATooLargeFrameIsNotWritten(t *testing.T) {
	raw, err := json.Marshal(strings.Repeat("x", bridge.MaxFrameBytes))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := appendFrame([]byte("before"), envelope{ID: 1, Args: raw}); bridge.CodeOf(err) != bridge.TooLarge || got != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// FuzzFrames reads whatever comes as a row of frames: it never panics, no
// payload is over the limit, and every frame that is understood survives being
// written and read again.
func FuzzFrames(f *testing.F) {
	const limit = 1 << 12
	for _, e := range []envelope{
		helloFrame("t", 1),
		{ID: 7, Op: "send", Args: json.RawMessage(`{"to":"a"}`)},
		{ID: 7, Result: json.RawMessage(`null`)},
		{Event: "mail", Data: json.RawMessage(`[1,{}]`)},
		{ID: 9, Error: bridge.Errorf(bridge.Busy, "no")},
	} {
		data, err := appendFrame(nil, e)
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
			payload, err := readFrame(reader, limit)
			if len(payload) > limit || cap(payload) > limit {
				t.Fatalf("a payload of %d bytes (%d allocated)", len(payload), cap(payload))
			}
			if err != nil {
				if err == io.EOF && consumed != len(data) { //nolint:errorlint // io.EOF itself means a clean end
					t.Fatalf("a clean end after %d of %d bytes", consumed, len(data))
				}
				return
			}
			consumed += 4 + len(payload)
			e, err := parseEnvelope(payload)
			if err != nil {
				if bridge.CodeOf(err) != bridge.Invalid {
					t.Fatalf("refused with %v", err)
				}
				continue
			}
			again, err := appendFrame(nil, e)
			if err != nil {
				t.Fatalf("write %+v: %v", e, err)
			}
			second, err := readFrame(bufio.NewReader(bytes.NewReader(again)), bridge.MaxFrameBytes)
			if err != nil {
				t.Fatalf("read %q: %v", again, err)
			}
			back, err := parseEnvelope(second)
			if err != nil {
				t.Fatalf("parse %q: %v", second, err)
			}
			third, err := appendFrame(nil, back)
			if err != nil || !bytes.Equal(again, third) {
				t.Fatalf("not stable (%v):\n%s", err, cmp.Diff(string(again), string(third)))
			}
		}
	})
}
