package subject

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"
	"testing"
)

func TestHUB_03_TheRosterHasNames(t *testing.T) {
	for text, want := range map[string]Member{
		`{"name":"desk"}`:                       {Name: "desk"},
		`{"name":"desk","removed":true}`:        {Name: "desk", Removed: true},
		`{"name":"desk","later":{"n":[1,2]}}`:   {Name: "desk"},
		`{"name":""}`:                           {},
		`{"name":"a/b"}`:                        {},
		`{}`:                                    {},
		`{"name":"desk"`:                        {},
		`{"name":"` + strings.Repeat("a", 1025): {},
	} {
		got, err := ParseMember([]byte(text))
		if got != want || (err == nil) != (want.Name != "") {
			t.Errorf("ParseMember(%s) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	data, err := Member{Name: "desk", Removed: true}.Encode()
	if again, parseErr := ParseMember(data); err != nil || parseErr != nil || again != (Member{Name: "desk", Removed: true}) {
		t.Errorf("%s, %v, %+v, %v", data, err, again, parseErr)
	}
}

func TestHUB_02_AnEntryCountsOnlyAsTheHubSealedIt(t *testing.T) {
	hub, sign := sealer(t)
	other, signOther := sealer(t)
	at := BucketKey(RosterBucket("crew"), anna)
	seal := func(by func([]byte) ([]byte, []byte), at string) []byte {
		data, err := Seal(by, at, 7, []byte(`{"name":"desk"}`))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	right := seal(sign, at)
	body, number, err := Open(hub, at, right)
	if string(body) != `{"name":"desk"}` || number != 7 || err != nil {
		t.Errorf("Open = %s, %d, %v", body, number, err)
	}
	for name, tt := range map[string]struct {
		hub, at string
		data    []byte
	}{
		"by another":         {hub, at, seal(signOther, at)},
		"of another hub":     {other, at, right},
		"of another PC":      {hub, BucketKey(RosterBucket("crew"), bert), right},
		"with other words":   {hub, at, []byte(strings.Replace(string(right), `"number":7`, `"number":8`, 1))},
		"not sealed":         {hub, at, []byte(`{"name":"desk"}`)},
		"nothing":            {hub, at, nil},
		"more than it reads": {hub, at, []byte(`{"body":"` + strings.Repeat("a", 5000) + `"}`)},
	} {
		if body, number, err := Open(tt.hub, tt.at, tt.data); err == nil || body != nil || number != 0 {
			t.Errorf("%s: Open = %s, %d, %v", name, body, number, err)
		}
	}
}

// sealer is somebody who can seal.
func sealer(t *testing.T) (id string, sign func([]byte) (key, signature []byte)) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:]), func(message []byte) ([]byte, []byte) { return key, ed25519.Sign(private, message) }
}

func TestHUB_03_APCIsFoundByNameOrByTheBeginningOfItsIdentity(t *testing.T) {
	type pc struct{ name, id string }
	all := []pc{{"laptop", "aaaabbbbccccdddd0001"}, {"desk", "aaaabbbbccccdddd0002"}, {"aaaabbbbcccc", "ffff0000ffff0000ffff"}}
	for _, tt := range []struct {
		text, want string // "" for none
	}{
		{"laptop", "laptop"},
		{"aaaabbbbccccdddd0002", "desk"},
		{"aaaa bbbb cccc dddd 0001", "laptop"},
		{"ffff0000ffff", "aaaabbbbcccc"},
		{"aaaabbbbcccc", "aaaabbbbcccc"}, // a name goes before an identity
		{"aaaabbbbccccdddd", ""},         // of two
		{"ffff0000fff", ""},              // 11 digits are too few
		{"", ""},
		{"lap", ""},
		{"Laptop", ""},
	} {
		got, err := FindPC(all, tt.text, func(item pc) (name, id string) { return item.name, item.id })
		if got.name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q finds %q, %v; want %q", tt.text, got.name, err, tt.want)
		}
	}
}

func TestHUB_02_AnEntryNamesItsKey(t *testing.T) {
	hub, sign := sealer(t)
	data, err := Seal(sign, "at", 1, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{string(data): hub, "{": "", `{"body":"e30="}`: "", "": ""} {
		if got := SealedBy([]byte(text)); got != want {
			t.Errorf("%.40s is sealed by %q, want %q", text, got, want)
		}
	}
}
