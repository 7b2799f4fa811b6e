package link

import (
	"context"
	"crypto/hmac"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/network/link/cpace"
)

func TestRMT_01_TwoPCsPair(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	invitation := b.invite(time.Now)
	typed := strings.ToLower(strings.ReplaceAll(invitation.Code, "-", " "))
	pair, err := a.join(b, typed)
	if err != nil {
		t.Fatal(err)
	}
	if err := next(t, "the end of the pairing", b.paired); err != nil {
		t.Fatal(err)
	}
	if pair.ID != b.identity.ID || pair.Name != "desk" {
		t.Errorf("the joiner has %+v", pair)
	}
	for _, of := range []struct{ self, other *pc }{{a, b}, {b, a}} {
		again, err := OpenPairList(filepath.Dir(of.self.book.path), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.ByName(of.other.name)
		if err != nil || got.ID != of.other.identity.ID || !got.Confirmed {
			t.Errorf("%s remembers %+v, %v", of.self.name, got, err)
		}
	}
	if _, err := a.join(b, invitation.Code); err == nil || invitation.State() != InvitationUsed {
		t.Errorf("the code can be used again: %v, %s", err, invitation.State())
	}
	if info, err := os.Stat(filepath.Join(filepath.Dir(b.book.path), identityFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

func TestRMT_01_ThreeWrongCodesBurnTheInvitation(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	invitation := b.invite(time.Now)
	wrong := "0000-0000"
	for i := range 3 {
		if state := invitation.State(); state != InvitationOpen {
			t.Fatalf("after %d wrong codes it is %s", i, state)
		}
		_, err := a.join(b, wrong)
		if err == nil || !strings.Contains(err.Error(), "the code is wrong, was used, or has expired") {
			t.Fatalf("a wrong code: %v", err)
		}
		next(t, "the end of the pairing", b.paired)
	}
	if state := invitation.State(); state != InvitationBurnt {
		t.Fatalf("after three wrong codes it is %s", state)
	}
	if _, err := a.join(b, invitation.Code); err == nil || !strings.Contains(err.Error(), "no invitation is open") {
		t.Errorf("the right code afterwards: %v", err)
	}
	if pairs := append(a.book.Pairs(), b.book.Pairs()...); len(pairs) > 0 {
		t.Errorf("somebody has a pair: %v", pairs)
	}
}

func TestRMT_01_ManyAtOnceHaveNoMoreThanThreeTries(t *testing.T) {
	b := newPC(t, "desk").listen()
	invitation := b.invite(time.Now)
	tried := 0
	invitation.mu.Lock() // all that come wait here with their proofs
	var joiners sync.WaitGroup
	for range 20 {
		joiners.Go(func() {
			a := newPC(t, "laptop")
			_, _ = a.join(b, "0000-0000")
		})
	}
	invitation.mu.Unlock()
	joiners.Wait()
	for len(b.paired) > 0 {
		next(t, "the end of the pairing", b.paired)
		tried++
	}
	if state := invitation.State(); state != InvitationBurnt || invitation.wrong != 3 {
		t.Errorf("of %d who came %d were looked at, the invitation is %s", tried, invitation.wrong, state)
	}
}

func TestRMT_01_AnInvitationLivesTenMinutes(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	began := time.Now()
	now := began
	invitation := b.invite(func() time.Time { return now })
	now = began.Add(10*time.Minute - time.Millisecond)
	if state := invitation.State(); state != InvitationOpen {
		t.Errorf("a moment before it is %s", state)
	}
	now = began.Add(10 * time.Minute)
	if _, err := a.join(b, invitation.Code); err == nil {
		t.Error("an expired code was taken")
	}
	if state := invitation.State(); state != InvitationExpired {
		t.Errorf("it is %s", state)
	}
	<-invitation.Ended()
}

func TestRMT_01_Codes(t *testing.T) {
	for typed, want := range map[string]string{
		"7K3M-QX9T": "7K3MQX9T", "7k3m qx9t": "7K3MQX9T", " 7K3MQX9T\n": "7K3MQX9T", "oOiI-lL00": "00111100",
		"": "", "7K3M-QX9": "", "7K3M-QX9T0": "", "7K3M-QXUT": "", "7K3M-QX9é": "", "----": "", "7K3M_QX9T": "",
	} {
		got, err := CleanCode(typed)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q reads as %q, %v", typed, got, err)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		code := NewInvitation(time.Now).Code
		clean, err := CleanCode(code)
		if err != nil || len(code) != 9 || code[4] != '-' || seen[clean] {
			t.Fatalf("a code is %q (%v), or came twice", code, err)
		}
		seen[clean] = true
	}
}

func TestRMT_01_NamesAreUnique(t *testing.T) {
	a, other, b := newPC(t, "laptop"), newPC(t, "laptop"), newPC(t, "desk").listen()
	pairUp(t, a, b)
	invitation := b.invite(time.Now)
	_, err := other.join(b, invitation.Code)
	if bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), `another PC named "laptop" is paired already`) {
		t.Errorf("a second laptop: %v", err)
	}
	next(t, "the end of the pairing", b.paired)
	if state := invitation.State(); state != InvitationOpen {
		t.Errorf("a code that was right counted as wrong: %s", state)
	}
	other.name = "tablet"
	if _, err := other.join(b, invitation.Code); err != nil {
		t.Error(err)
	}
	if _, err := a.join(a.listen(), "0000-0000"); bridge.CodeOf(err) == "" {
		t.Error("a PC paired with itself")
	}
}

// middle stands between two PCs with an identity of its own, and passes on what it
// can read.
func middle(t *testing.T, victim string) net.Listener {
	t.Helper()
	mallory, err := OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config := mallory.config(pairing.protocol, func(string) error { return nil })
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); tasks.Wait() })
	tasks.Go(func() {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		out, err := tls.Dial("tcp", victim, config)
		if err != nil {
			return
		}
		defer out.Close()
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		_, _ = io.Copy(out, in)
		_ = out.Close()
		both.Wait()
	})
	return listener
}

func TestRMT_01_WhoStandsInTheMiddleGetsNothing(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	invitation := b.invite(time.Now)
	between := middle(t, b.address())
	_, err := Join(context.Background(), a.identity, a.book, a.name, between.Addr().String(), invitation.Code)
	if err == nil {
		t.Fatal("they have paired with somebody in the middle")
	}
	if err := next(t, "the end of the pairing", b.paired); err == nil {
		t.Fatal("the inviter has paired with somebody in the middle")
	}
	if pairs := append(a.book.Pairs(), b.book.Pairs()...); len(pairs) > 0 {
		t.Errorf("somebody has a pair: %v", pairs)
	}
}

// TestRMT_01_TheConnectionIsPartOfTheKey: somebody who has both certificates' keys
// but not the code cannot join two connections into one exchange.
func TestRMT_01_TheConnectionIsPartOfTheKey(t *testing.T) {
	x := &exchange{binding: []byte("one connection")}
	y := &exchange{binding: []byte("another one")}
	a, err := cpace.New(x.setting("7K3MQX9T", "i", []byte("s"), "A", "a", "B", "b"), true)
	if err != nil {
		t.Fatal(err)
	}
	b, err := cpace.New(y.setting("7K3MQX9T", "i", []byte("s"), "A", "a", "B", "b"), false)
	if err != nil {
		t.Fatal(err)
	}
	keyA, _ := a.Key(b.Share())
	keyB, _ := b.Key(a.Share())
	if hmac.Equal(keyA, keyB) {
		t.Error("two connections have one key")
	}
}

// TestRMT_01_AHalfMadePairEndsAfterADay: the inviter has recorded it, the joiner never
// heard so.
func TestRMT_01_AHalfMadePairEndsAfterADay(t *testing.T) {
	began := time.Now().Truncate(time.Millisecond)
	now := began
	folder := t.TempDir()
	book, err := OpenPairList(folder, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range []Pair{{ID: "a", Name: "half", PairedAt: began.UnixMilli()}, {ID: "b", Name: "whole", PairedAt: began.UnixMilli(), Confirmed: true}} {
		if err := book.Add(pair); err != nil {
			t.Fatal(err)
		}
	}
	now = began.Add(24 * time.Hour)
	if _, err := book.ByID("a"); err != nil {
		t.Errorf("within a day: %v", err)
	}
	now = now.Add(time.Second)
	if _, err := book.ByID("a"); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("after a day: %v", err)
	}
	if _, err := book.ByID("b"); err != nil {
		t.Errorf("the whole one: %v", err)
	}
}

func TestRMT_01_DamagedFilesAreLeftAsTheyAre(t *testing.T) {
	for name, content := range map[string]string{
		"pairs.json": `{"version":1,"pairs":[`, "pairs.json ": `{"version":2}`, identityFile: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, strings.TrimSpace(name))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, bookErr := OpenPairList(folder, time.Now)
		_, identityErr := OpenIdentity(folder)
		err := bookErr
		if name == identityFile {
			err = identityErr
		}
		after, readErr := os.ReadFile(path)
		if err == nil || readErr != nil || string(after) != content {
			t.Errorf("%s: %v, %v, now %q", name, err, readErr, after)
		}
	}
}
