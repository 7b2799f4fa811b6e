package seal

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
)

func newKey(t *testing.T) (private ed25519.PrivateKey, key []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = x509.MarshalPKIXPublicKey(public); err != nil {
		t.Fatal(err)
	}
	return private, key
}

func TestHUB_02_OnlyTheReceiverOpensABox(t *testing.T) {
	mine, key := newKey(t)
	others, _ := newKey(t)
	const under = "bridge.v1.crew.a.b.msg"
	body := []byte("what nobody else reads")
	sealed, err := Seal(key, under, body)
	if err != nil || len(sealed) != len(body)+Overhead || !IsSealed(sealed) || bytes.Contains(sealed, body) {
		t.Fatalf("sealed is %q, %v", sealed, err)
	}
	if opened, err := Open(mine, under, sealed); err != nil || !bytes.Equal(opened, body) {
		t.Errorf("it opens as %q, %v", opened, err)
	}
	if again, err := Seal(key, under, body); err != nil || bytes.Equal(again, sealed) {
		t.Errorf("the same twice looks the same: %v", err)
	}
	for name, try := range map[string]struct {
		private ed25519.PrivateKey
		under   string
		sealed  []byte
	}{
		"with another key":      {others, under, sealed},
		"under another subject": {mine, "bridge.v1.crew.c.b.msg", sealed},
		"cut off":               {mine, under, sealed[:len(sealed)-1]},
		"its mark alone":        {mine, under, sealed[:len(mark)]},
		"nothing":               {mine, under, nil},
		"what is not sealed":    {mine, under, body},
	} {
		if opened, err := Open(try.private, try.under, try.sealed); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%s: %q, %v", name, opened, err)
		}
	}
	for i := range sealed {
		changed := slices.Clone(sealed)
		changed[i] ^= 1
		if opened, err := Open(mine, under, changed); err == nil {
			t.Fatalf("with byte %d changed it opens as %q", i, opened)
		}
	}
}

// TestHUB_02_AKeyToSealToIsThatOfTheIdentity: both halves that are made of an Ed25519 key
// belong to each other.
func TestHUB_02_AKeyToSealToIsThatOfTheIdentity(t *testing.T) {
	for range 50 {
		private, key := newKey(t)
		digest := sha512.Sum512(private.Seed())
		secret, err := ecdh.X25519().NewPrivateKey(digest[:32])
		if err != nil {
			t.Fatal(err)
		}
		public, err := exchange(key)
		if err != nil || !bytes.Equal(secret.PublicKey().Bytes(), public[:]) {
			t.Fatalf("of %x comes %x (%v), want %x", key, public, err, secret.PublicKey().Bytes())
		}
	}
}

func TestHUB_02_WhatIsNoKeyIsRefused(t *testing.T) {
	_, key := newKey(t)
	if got, id, err := Parse(Text(key)); err != nil || !bytes.Equal(got, key) || len(id) != 64 {
		t.Errorf("a key is read as %x of %q, %v", got, id, err)
	}
	point := func(first, rest, last byte) string {
		public := append(append([]byte{first}, bytes.Repeat([]byte{rest}, 30)...), last)
		return Text(append(slices.Clone(key[:len(key)-ed25519.PublicKeySize]), public...))
	}
	for name, text := range map[string]string{
		"nothing": "", "words": "what is it", "half a key": Text(key[:20]), "an identity": "3f2a", "the neutral point": point(1, 0, 0), "what is no number of the field": point(0xff, 0xff, 0x7f),
	} {
		if _, _, err := Parse(text); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHUB_02_AWrittenKeyIsThatOfItsPC(t *testing.T) {
	_, key := newKey(t)
	_, other := newKey(t)
	id := func(key []byte) string { sum := sha256.Sum256(key); return hex.EncodeToString(sum[:]) }
	for _, tt := range []struct {
		name, id, text string
		is             bool
	}{
		{"its own", id(key), Text(key), true}, {"another's", id(other), Text(key), false}, {"no base64", id(key), Text(key) + "!", false},
	} {
		got, is := KeyOf(tt.id, tt.text)
		if is != tt.is || is && !bytes.Equal(got, key[:len(got)]) {
			t.Errorf("%s: %t", tt.name, is)
		}
	}
}

func TestHUB_02_ABoxOfNothingIsOpenedUnderItsSubjectAlone(t *testing.T) {
	mine, key := newKey(t)
	empty, err := Seal(key, "subject", nil)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := Open(mine, "subject", empty); err != nil || len(opened) != 0 {
		t.Errorf("a box of nothing opens as %q, %v", opened, err)
	}
	if opened, err := Open(mine, "another", empty); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("under another subject it opens as %q, %v", opened, err)
	}
}

func TestHUB_02_AKeyBeyondTheFieldIsRefused(t *testing.T) {
	prime := bytes.Repeat([]byte{0xff}, ed25519.PublicKeySize) // 2^255 - 19, the least number that is no element
	prime[0], prime[31] = 0xed, 0x7f
	key, err := x509.MarshalPKIXPublicKey(ed25519.PublicKey(prime))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Seal(key, "subject", nil); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("it is sealed to: %v", err)
	}
}
