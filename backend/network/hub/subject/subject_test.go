package subject

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	anna = strings.Repeat("a1", 32)
	bert = strings.Repeat("b2", 32)
)

func TestHUB_02_ASubjectSaysWhoWhomAndWhat(t *testing.T) {
	tests := []struct {
		text string
		want Subject
	}{
		{"bridge.v1.crew." + anna + "." + bert + ".frame", Subject{"crew", anna, bert, Frame}},
		{"bridge.v1.crew-2." + anna + "." + bert + ".msg", Subject{"crew-2", anna, bert, Message}},
		{"bridge.v1.c." + anna + ".dec", Subject{Team: "c", From: anna, Sort: Decision}},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", tt.text, got, err, tt.want)
		}
	}
}

func TestHUB_02_NothingElseIsASubject(t *testing.T) {
	pair := anna + "." + bert
	tests := []string{
		"", "bridge", "bridge.v1.", "bridge.v2.crew." + pair + ".frame", " bridge.v1.crew." + pair + ".frame",
		"bridge.v1.crew." + pair + ".frames", "bridge.v1.crew." + pair + ".dec", "bridge.v1.crew." + anna + ".msg",
		"bridge.v1.crew." + pair + ".frame.x", "bridge.v1.crew." + pair + ".frame ", "bridge.v1.crew." + pair + ".",
		"bridge.v1.*." + pair + ".frame", "bridge.v1.crew.*." + bert + ".frame", "bridge.v1.crew." + anna + ".*.msg",
		"bridge.v1.crew.>", "bridge.v1.crew." + strings.ToUpper(anna) + "." + bert + ".msg",
		"bridge.v1.crew." + anna[1:] + "." + bert + ".msg", "bridge.v1.crew." + anna + "a." + bert + ".msg",
		"bridge.v1.Crew." + pair + ".msg", "bridge.v1.-crew." + pair + ".msg", "bridge.v1.crew-." + pair + ".msg",
		"bridge.v1.." + pair + ".msg", "bridge.v1." + strings.Repeat("t", 33) + "." + pair + ".msg",
		"bridge.v1.crew." + anna[:63] + "g." + bert + ".msg", "bridge.v1.crew." + anna + "." + bert[:63] + "é.msg",
	}
	for _, text := range tests {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v, want a refusal", text, got)
		}
	}
}

func FuzzHUB_02_Parse(f *testing.F) {
	f.Add("bridge.v1.crew." + anna + "." + bert + ".frame")
	f.Add("bridge.v1.crew." + anna + ".dec")
	f.Add("bridge.v1.crew." + anna + ".*.msg")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if s != (Subject{}) {
				t.Errorf("Parse(%q) = %+v with an error", text, s)
			}
			return
		}
		if s.String() != text || strings.ContainsAny(text, "*> \t\r\n") {
			t.Errorf("Parse(%q) = %+v, which is %q", text, s, s)
		}
	})
}

func TestHUB_01_LimitsAreThoseOfTheLink(t *testing.T) {
	if MaxFrameBytes != 1_048_576 || MaxPayloadBytes != 1_064_960 {
		t.Errorf("limits are %d and %d", MaxFrameBytes, MaxPayloadBytes)
	}
	if CheckTeam(strings.Repeat("t", 32)) != nil || CheckTeam(strings.Repeat("t", 33)) == nil {
		t.Error("a team's name has at most 32 characters")
	}
}

func TestHUB_01_KeysOfABucketArePCs(t *testing.T) {
	bucket := PresenceBucket("crew")
	if pc, err := ParseBucketKey(bucket, "$KV.bridge-crew-presence."+anna); err != nil || pc != anna {
		t.Errorf("ParseBucketKey = %q, %v", pc, err)
	}
	for _, text := range []string{"$KV.bridge-crew-presence.*", "$KV.bridge-crew-pcs." + anna, "$KV.bridge-crew-presence." + anna + ".x", ""} {
		if pc, err := ParseBucketKey(bucket, text); err == nil {
			t.Errorf("ParseBucketKey(%q) = %q, want a refusal", text, pc)
		}
	}
}

// matches is how NATS compares a subject with a pattern.
func matches(pattern, subject string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		if token == ">" {
			return len(got) > i
		}
		if i >= len(got) || token != "*" && token != got[i] {
			return false
		}
	}
	return len(want) == len(got)
}

func TestHUB_02_APCMaySpeakUnderItsOwnIdentityOnly(t *testing.T) {
	allowed := For("crew", anna)
	tests := []struct {
		subject string
		want    bool
	}{
		{"bridge.v1.crew." + anna + "." + bert + ".frame", true},
		{"bridge.v1.crew." + anna + "." + bert + ".msg", true},
		{"bridge.v1.crew." + anna + ".dec", true},
		{"$KV.bridge-crew-presence." + anna, true},
		{"$JS.API.CONSUMER.MSG.NEXT.bridge-crew-msg." + anna, true},
		{"$JS.ACK.bridge-crew-msg." + anna + ".1.2.3.4.5", true},
		{"$JS.API.DIRECT.GET.bridge-crew-dec", true},
		{"bridge.v1.crew." + bert + "." + anna + ".frame", false},
		{"bridge.v1.crew." + bert + "." + anna + ".msg", false},
		{"bridge.v1.crew." + bert + ".dec", false},
		{"bridge.v1.other." + anna + "." + bert + ".msg", false},
		{"$KV.bridge-crew-presence." + bert, false},
		{"$KV.bridge-crew-pcs." + anna, false},
		{"$JS.API.CONSUMER.MSG.NEXT.bridge-crew-msg." + bert, false},
		{"$JS.ACK.bridge-crew-msg." + bert + ".1.2.3.4.5", false},
		{"$JS.API.DIRECT.GET.bridge-crew-msg", false}, // would read any inbox
		{"$JS.API.STREAM.MSG.GET.bridge-crew-msg", false},
		{"$JS.API.CONSUMER.CREATE.bridge-crew-msg", false},
		{"$JS.API.CONSUMER.CREATE.bridge-crew-msg." + anna + "." + Inbox("crew", anna), false},
		{"$JS.API.CONSUMER.DELETE.bridge-crew-msg." + anna, false},
		{"$JS.API.STREAM.PURGE.bridge-crew-dec", false},
		{"$JS.API.STREAM.CREATE.own", false},
		{"$JS.API.INFO", false},
		{"_INBOX_" + bert + ".x", false},
		{"$SYS.REQ.SERVER.PING", false},
	}
	for _, tt := range tests {
		got := slices.ContainsFunc(allowed.Publish, func(p string) bool { return matches(p, tt.subject) })
		if got != tt.want {
			t.Errorf("publish to %s: allowed %v, want %v", tt.subject, got, tt.want)
		}
	}
}

func TestHUB_02_APCHearsItsOwnAndWhatIsEverybodys(t *testing.T) {
	want := []string{
		"_INBOX_" + anna + ".>", "bridge.v1.crew.*." + anna + ".frame", "bridge.v1.crew.*.dec",
		"$KV.bridge-crew-presence.*", "$KV.bridge-crew-pcs.*",
	}
	if got := For("crew", anna).Subscribe; !slices.Equal(got, want) {
		t.Errorf("Subscribe = %q, want %q", got, want)
	}
	if got := Inbox("crew", anna); got != "bridge.v1.crew.*."+anna+".msg" {
		t.Errorf("Inbox = %q", got)
	}
}

// signer is a PC that can sign.
func signer(t *testing.T) (pc string, sign func(subject string, number int64, body string) Proof) {
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
	return hex.EncodeToString(sum[:]), func(subject string, number int64, body string) Proof {
		return Proof{Key: key, Number: number, Signature: ed25519.Sign(private, Signed(subject, number, []byte(body)))}
	}
}

func TestHUB_02_WordsCountOnlyAsTheirPCSignedThem(t *testing.T) {
	pc, sign := signer(t)
	_, signOther := signer(t)
	subject := Subject{"crew", pc, bert, Message}.String()
	elsewhere := Subject{"crew", pc, anna, Message}.String()
	right := sign(subject, 7, "hello")
	renumbered := right
	renumbered.Number = 8
	tests := []struct {
		name, subject, body string
		proof               Proof
		want                bool
	}{
		{"as it was said", subject, "hello", right, true},
		{"other words", subject, "hellO", right, false},
		{"to another inbox", elsewhere, "hello", right, false},
		{"by another key", subject, "hello", signOther(subject, 7, "hello"), false},
		{"with another number", subject, "hello", renumbered, false},
		{"without a signature", subject, "hello", Proof{Key: right.Key, Number: 7}, false},
		{"nothing at all", subject, "hello", Proof{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.proof.Check(pc, tt.subject, []byte(tt.body)); (err == nil) != tt.want {
				t.Errorf("Check = %v, want right: %v", err, tt.want)
			}
		})
	}
}

func TestHUB_02_AProofTravelsInHeaders(t *testing.T) {
	pc, sign := signer(t)
	subject := Subject{"crew", pc, bert, Frame}.String()
	headers := sign(subject, 1<<60, "x").Headers()
	proof, err := ParseProof(func(h string) string { return headers[h] })
	if err != nil || proof.Check(pc, subject, []byte("x")) != nil || proof.Number != 1<<60 {
		t.Errorf("ParseProof = %+v, %v", proof, err)
	}
	for _, missing := range []string{HeaderKey, HeaderNumber, HeaderSignature} {
		for _, bad := range []string{"", "%", "-1"} {
			_, err := ParseProof(func(h string) string {
				if h == missing {
					return bad
				}
				return headers[h]
			})
			if err == nil {
				t.Errorf("a proof with %q as %s was read", bad, missing)
			}
		}
	}
}

// What one PC hears of who is there does not grow with the team, and a word outlasts the
// next two.
func TestHUB_08_PresenceOfALargeTeamIsRare(t *testing.T) {
	const every = PresenceEvery
	for pcs := range 2001 {
		rarely := Rarely(pcs)
		if heard := float64(pcs) / float64(rarely) / every.Seconds(); heard > 16 {
			t.Fatalf("in a team of %d a PC hears %.1f words a second", pcs, heard)
		}
		if life := PresenceLife * time.Duration(rarely); life < 3*every*time.Duration(rarely) || life > LongestPresence {
			t.Fatalf("in a team of %d a word counts for %s", pcs, life)
		}
	}
	if Rarely(0) != 1 || Rarely(100) != 1 {
		t.Error("a small team waits longer than it has to")
	}
}

func TestHUB_08_TheHubsWordNamesTheLastOneOfThePC(t *testing.T) {
	if left, err := ParseLeft([]byte(`{"gone":true,"number":7,"more":1}`)); err != nil || left.Number != 7 {
		t.Errorf("read %+v, %v", left, err)
	}
	for _, text := range []string{``, `{}`, `{"gone":true}`, `{"gone":false,"number":7}`, `{"gone":true,"number":-1}`, `{"name":"anna"}`} {
		if left, err := ParseLeft([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, left)
		}
	}
}

func TestHUB_02_ATeamsNameAtItsBounds(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "z": true, "0": true, "9": true, "a-z": true, strings.Repeat("t", MaxTeamChars): true, strings.Repeat("t", MaxTeamChars+1): false,
		"`": false, "{": false, "/": false, ":": false, "-a": false, "a-": false, "": false,
	} {
		if err := CheckTeam(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestHUB_02_AForeignTextIsQuotedInPart(t *testing.T) {
	for size, cut := range map[int]bool{200: false, 201: true} {
		if got := shown(strings.Repeat("x", size)); strings.Contains(got, "...") != cut || len(got) != 202+map[bool]int{true: 3}[cut] {
			t.Errorf("of %d bytes %d are shown", size, len(got))
		}
	}
}

func TestHUB_02_AProofHasANumber(t *testing.T) {
	right := Proof{Key: []byte("key"), Signature: make([]byte, ed25519.SignatureSize), Number: 1}
	for _, tt := range []struct {
		name   string
		change func(*Proof)
		ok     bool
	}{
		{"right", func(*Proof) {}, true},
		{"number 0", func(p *Proof) { p.Number = 0 }, false},
		{"a negative number", func(p *Proof) { p.Number = -1 }, false},
		{"no key", func(p *Proof) { p.Key = nil }, false},
		{"a short signature", func(p *Proof) { p.Signature = p.Signature[1:] }, false},
	} {
		p := right
		tt.change(&p)
		headers := p.Headers()
		if got, err := ParseProof(func(name string) string { return headers[name] }); (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}
