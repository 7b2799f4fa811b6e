package subject

import (
	"reflect"
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

func TestHUB_08_LinesTravelAsTheyAre(t *testing.T) {
	lines := []Line{
		{PC: anna, Entry: 1 << 60, Name: "anna", Box: "key", Number: 7, At: 1_700_000_000_000, Word: []byte(`{"session":"x"}`), Key: []byte("key"), Signature: []byte("signature")},
		{PC: bert, Entry: 3, Name: "bert", Removed: true, Refusals: []Refusal{{Why: RefusedForbidden, Count: 4, Last: 1_700_000_000_000}, {Why: RefusedFlooding, Count: 1, Last: 3}}},
		{PC: bert, Number: 9, At: -1},
		{PC: anna, Number: 8, Left: true},
	}
	var data []byte
	for _, line := range lines {
		var err error
		if data, err = line.Append(data); err != nil {
			t.Fatal(err)
		}
	}
	now := time.UnixMilli(1_700_000_000_123)
	whole := EncodePresence(now, true, data)
	message, err := ParsePresence(whole)
	if err != nil || message.Now != now.UnixMilli() || !message.More || len(message.Lines) != len(lines) {
		t.Fatalf("read %+v, %v", message, err)
	}
	for i, got := range message.Lines {
		want := lines[i]
		for _, part := range []*[]byte{&want.Word, &want.Key, &want.Signature} {
			*part = append([]byte{}, *part...)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("line %d is %+v, want %+v", i, got, want)
		}
	}
	whole = EncodePresence(now, false, data[:len(data)-1])
	for cut := range whole { // the end of a line is as good as none
		if message, err := ParsePresence(whole[:cut]); err == nil && (message.More || len(message.Lines) >= len(lines)) {
			t.Errorf("of %d bytes %+v was read", cut, message)
		}
	}
	if _, err := ParsePresence(whole); err == nil {
		t.Error("a line that is cut short was read")
	}
	if _, err := (Line{PC: "anna"}).Append(nil); err == nil {
		t.Error("what is no identity was told of")
	}
}

func FuzzHUB_08_ParseTold(f *testing.F) {
	data, err := Line{PC: anna, Entry: 1, Name: "anna", Number: 2, Word: []byte("w")}.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(EncodePresence(time.UnixMilli(1), false, data))
	f.Fuzz(func(t *testing.T, data []byte) {
		message, err := ParsePresence(data)
		if err != nil && len(message.Lines) > 0 {
			t.Errorf("%+v with %v", message, err)
		}
		for _, line := range message.Lines {
			if CheckPC(line.PC) != nil {
				t.Errorf("%+v is of nobody", line)
			}
		}
	})
}

func TestHUB_08_ALineIsReadToItsLastByte(t *testing.T) {
	line := Line{PC: anna, Name: "anna", Number: 1, Word: []byte{}, Key: []byte{}, Signature: []byte("s")}
	data, err := line.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if message, err := ParsePresence(EncodePresence(time.UnixMilli(1), false, data)); err != nil || len(message.Lines) != 1 || string(message.Lines[0].Signature) != "s" {
		t.Errorf("the whole is %+v, %v", message, err)
	}
	for _, short := range [][]byte{nil, {toldVersion}, {toldVersion + 1, 0, 0}} {
		if message, err := ParsePresence(short); err == nil {
			t.Errorf("%v was read as %+v", short, message)
		}
	}
	if message, err := ParsePresence([]byte{toldVersion, 0, 2}); err != nil || message.Now != 1 || len(message.Lines) != 0 {
		t.Errorf("no lines: %+v, %v", message, err)
	}
	if _, err := ParsePresence([]byte{toldVersion, 0}); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("a head without a time: %v", err)
	}
	r := reader{}
	if part := r.part(); len(part) != 0 || !r.short {
		t.Errorf("a part of nothing: %q, short %t", part, r.short)
	}
	r = reader{rest: []byte{2, 'a', 'b'}}
	if part := r.part(); string(part) != "ab" || r.short || len(r.rest) != 0 {
		t.Errorf("a part that is all there is: %q, short %t", part, r.short)
	}
	r = reader{rest: []byte{0}}
	if part := r.part(); len(part) != 0 || r.short {
		t.Errorf("an empty part: %q, short %t", part, r.short)
	}
}
