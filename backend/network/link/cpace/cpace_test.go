package cpace

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/gtank/ristretto255"

	"bridge/backend/core/bridge"
)

// The vectors of draft-irtf-cfrg-cpace-21, appendix B.3.
var published = struct {
	setting                               Setting
	generatorString, generator            string
	secretA, shareA, secretB, shareB, key string
}{
	setting: Setting{
		Code: []byte("Password"), Channel: []byte("oc\vB_responder\vA_initiator"),
		Session:   unhex("7e4b4791d6a8ef019b936c79fb7f2c57"),
		Initiator: []byte("ADa"), Responder: []byte("ADb"),
	},
	generatorString: "11435061636552697374726574746f3235350850617373776f726464" + zeros(100) +
		"1a6f630b425f726573706f6e6465720b415f696e69746961746f72107e4b4791d6a8ef019b936c79fb7f2c57",
	generator: "a6fc82c3b8968fbb2e06fee81ca858586dea50d248f0c7ca6a18b0902a30b36b",
	secretA:   "da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08",
	shareA:    "d40fb265a7abeaee7939d91a585fe59f7053f982c296ec413c624c669308f87a",
	secretB:   "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d",
	shareB:    "08bcf6e9777a9c313a3db6daa510f2d398403319c2341bd506a92e672eb7e307",
	key: "4c5469a16b2364c4b944ebc1a79e51d1674ad47db26e8718154f59faebfaa52d" +
		"8346f30aa58377117eb20d527f2cbc5c76381f7fd372e89df8239f87f2e02ed1",
}

func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }

func unhex(text string) []byte {
	data, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

func scalar(t *testing.T, text string) *ristretto255.Scalar {
	t.Helper()
	s := ristretto255.NewScalar()
	if err := s.Decode(unhex(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRMT_01_PublishedVectors(t *testing.T) {
	v := published
	a := begin(v.setting, true, scalar(t, v.secretA))
	b := begin(v.setting, false, scalar(t, v.secretB))
	keyA, err := a.Key(b.Share())
	if err != nil {
		t.Fatal(err)
	}
	keyB, err := b.Key(a.Share())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"the string that the generator is made of", generatorString(v.setting), v.generatorString},
		{"the generator", generator(v.setting).Encode(nil), v.generator},
		{"the initiator's share", a.Share(), v.shareA},
		{"the responder's share", b.Share(), v.shareB},
		{"the initiator's key", keyA, v.key},
		{"the responder's key", keyB, v.key},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s is\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

func TestRMT_01_OnlyTheSameSettingGivesTheSameKey(t *testing.T) {
	setting := func(change func(*Setting)) Setting {
		s := Setting{Code: []byte("AAAAAAAA"), Channel: []byte("channel"), Session: []byte("session"), Initiator: []byte("a"), Responder: []byte("b")}
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name   string
		change func(*Setting)
		same   bool
	}{
		{"nothing differs", func(*Setting) {}, true},
		{"the code", func(s *Setting) { s.Code = []byte("AAAAAAAB") }, false},
		{"the channel", func(s *Setting) { s.Channel = []byte("channem") }, false},
		{"the session", func(s *Setting) { s.Session = []byte("sessiom") }, false},
		{"what the initiator says", func(s *Setting) { s.Initiator = []byte("c") }, false},
		{"what the responder says", func(s *Setting) { s.Responder = []byte("c") }, false},
		{"the same bytes, parted elsewhere", func(s *Setting) { s.Channel, s.Session = []byte("channels"), []byte("ession") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := New(setting(func(*Setting) {}), true)
			if err != nil {
				t.Fatal(err)
			}
			b, err := New(setting(tt.change), false)
			if err != nil {
				t.Fatal(err)
			}
			keyA, errA := a.Key(b.Share())
			keyB, errB := b.Key(a.Share())
			if errA != nil || errB != nil || bytes.Equal(keyA, keyB) != tt.same {
				t.Errorf("same keys: %v, want %v (%v, %v)", !tt.same, tt.same, errA, errB)
			}
		})
	}
}

func TestRMT_01_SharesThatAreRefused(t *testing.T) {
	e, err := New(published.setting, true)
	if err != nil {
		t.Fatal(err)
	}
	// 2^255-19 encodes zero a second time; the group accepts one encoding only.
	notCanonical := append([]byte{0xed}, bytes.Repeat([]byte{0xff}, 30)...)
	notCanonical = append(notCanonical, 0x7f)
	for name, share := range map[string][]byte{
		"nothing":            nil,
		"a byte too short":   unhex(published.shareA)[:31],
		"a byte too long":    append(unhex(published.shareA), 0),
		"the identity":       make([]byte, 32),
		"not canonical":      notCanonical,
		"no element":         unhex("2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51d"),
		"a negative element": bytes.Repeat([]byte{1}, 32),
	} {
		if key, err := e.Key(share); bridge.CodeOf(err) != bridge.Invalid || key != nil {
			t.Errorf("%s: key %x, error %v", name, key, err)
		}
	}
	if _, err := New(Setting{}, true); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("an empty code: %v", err)
	}
}
