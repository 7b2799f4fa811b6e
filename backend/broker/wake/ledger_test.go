package wake

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/proc"
	"bridge/backend/storage/store"
)

// ledgerAt returns a ledger over a new store with messages from web to the peer p1, and
// what it logs. Its clock shows 70.
func ledgerAt(t *testing.T, messages ...string) (Ledger, *bytes.Buffer) {
	t.Helper()
	now := func() time.Time { return time.UnixMilli(70) }
	log := &bytes.Buffer{}
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "messages.db"), store.Options{Now: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, id := range messages {
		m := bridge.Message{ID: id, From: bridge.Address{ID: "p2", Name: "web", Agent: bridge.Codex}, To: "api", Recipient: "p1", ConversationID: id, Body: "body of " + id, CreatedAt: 1}
		if _, _, err := db.Append(t.Context(), []bridge.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	return Ledger{DB: db, Log: slog.New(slog.NewTextHandler(log, nil)), Now: now}, log
}

func (l Ledger) record(t *testing.T, stage bridge.Stage, message string, at int64, via mail.Via) {
	t.Helper()
	if err := l.DB.Record(t.Context(), stage, []mail.Mark{{MessageID: message, Recipient: "p1", At: at, Via: via}}); err != nil {
		t.Fatal(err)
	}
}

func (l Ledger) unread(t *testing.T, message string) (d mail.Delivery, isUnread bool) {
	t.Helper()
	all, err := l.DB.Unread(t.Context(), "p1", scan, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, delivery := range all {
		if delivery.ID == message {
			return delivery, true
		}
	}
	return mail.Delivery{}, false
}

func TestMSG_06_CHT_20_UnreadMailIsFoundByTheTransportThatGaveIt(t *testing.T) {
	l, _ := ledgerAt(t, "hook", "channel", "mod", "tool", "read", "waiting")
	for message, via := range map[string]mail.Via{"hook": mail.ViaWakeHook, "channel": mail.ViaChannel, "mod": mail.ViaMod, "tool": mail.ViaTool, "read": mail.ViaWakeHook} {
		l.record(t, bridge.StageHanded, message, 5, via)
	}
	l.record(t, bridge.StageConsumed, "read", 6, mail.ViaActivity)
	times, err := l.HandedByHooks(t.Context(), "p1")
	if want := map[string]int64{"hook": 5, "channel": 5}; err != nil || !maps.Equal(times, want) {
		t.Errorf("by hooks %v, %v, want %v", times, err, want)
	}
	byMod, err := l.HandedToMod(t.Context(), "p1")
	if err != nil || len(byMod) != 1 || byMod[0].ID != "mod" {
		t.Errorf("to the mod %v, %v", mail.IDs(byMod), err)
	}
	if times, err := l.HandedByHooks(t.Context(), "p9"); err != nil || len(times) != 0 {
		t.Errorf("of another session %v, %v", times, err)
	}
}

// Mail that a wake gave is found behind more mail than one reading returns.
func TestMSG_06_GivenMailIsFoundBehindALongBacklog(t *testing.T) {
	messages := make([]string, scan+2)
	for i := range messages {
		messages[i] = "m" + strings.Repeat("i", i)
	}
	last, byMod := messages[len(messages)-1], messages[len(messages)-2]
	l, _ := ledgerAt(t, messages...)
	l.record(t, bridge.StageHanded, last, 5, mail.ViaWakeHook)
	l.record(t, bridge.StageHanded, byMod, 5, mail.ViaMod)
	if times, err := l.HandedByHooks(t.Context(), "p1"); err != nil || times[last] != 5 {
		t.Errorf("by hooks %v, %v", times, err)
	}
	if deliveries, err := l.HandedToMod(t.Context(), "p1"); err != nil || len(deliveries) != 1 || deliveries[0].ID != byMod {
		t.Errorf("to the mod %v, %v", mail.IDs(deliveries), err)
	}
}

func TestMSG_06_ARequestedWakeIsRecorded(t *testing.T) {
	l, log := ledgerAt(t, "m")
	l.Asked(t.Context(), []mail.Mark{{MessageID: "m", Recipient: "p1", At: 7, Via: mail.ViaQueue}})
	if d, _ := l.unread(t, "m"); d.Woken.At != 7 || d.Woken.Via != mail.ViaQueue || log.Len() != 0 {
		t.Errorf("woken %+v; log %s", d.Woken, log)
	}
	if err := l.DB.Close(); err != nil {
		t.Fatal(err)
	}
	l.Asked(t.Context(), nil)
	if log.Len() != 0 {
		t.Errorf("nothing to record: %s", log)
	}
	l.Asked(t.Context(), []mail.Mark{{MessageID: "m", Recipient: "p1", At: 7, Via: mail.ViaQueue}})
	if log.Len() == 0 {
		t.Error("a wake that could not be recorded is not logged")
	}
}

func TestCHT_20_CTX_03_AnEnteredMessageIsReadAndCountedOnce(t *testing.T) {
	l, _ := ledgerAt(t, "m", "n")
	d, _ := l.unread(t, "m")
	spent := map[string]session.Cost{}
	if err := l.Entered(t.Context(), "p1", d, mail.ViaPrompt, "the host showed it"); err != nil { // nobody counts
		t.Fatal(err)
	}
	l.Spent = func(peerID string, cost session.Cost) { spent[peerID] = cost }
	d, _ = l.unread(t, "n")
	if err := l.Entered(t.Context(), "p1", d, mail.ViaPrompt, "the host showed it"); err != nil {
		t.Fatal(err)
	}
	if want := (session.Cost{Mail: int64(len(d.Body))}); spent["p1"] != want || len(spent) != 1 {
		t.Errorf("spent %+v, want %+v", spent, want)
	}
	for _, id := range []string{"m", "n"} {
		row, err := l.DB.Find(t.Context(), id)
		if err != nil || len(row.Deliveries) != 1 {
			t.Fatalf("%s: %+v, %v", id, row, err)
		}
		if got := row.Deliveries[0].Consumed; got.At != 70 || got.Via != mail.ViaPrompt || got.Evidence != "the host showed it" {
			t.Errorf("%s is read: %+v", id, got)
		}
	}
	if err := l.DB.Close(); err != nil {
		t.Fatal(err)
	}
	clear(spent)
	if err := l.Entered(t.Context(), "p1", d, mail.ViaPrompt, ""); err == nil || len(spent) != 0 {
		t.Errorf("not recorded, and counted: %v, %+v", err, spent)
	}
}

func TestCHT_20_AMessageThatTheModGaveUpIsOrdinaryMail(t *testing.T) {
	l, _ := ledgerAt(t, "m")
	l.record(t, bridge.StageHanded, "m", 5, mail.ViaMod)
	if err := l.GiveUp(t.Context(), "p1", "m", "  the turn \n did not begin "+strings.Repeat("ä", maxReasonChars)); err != nil {
		t.Fatal(err)
	}
	d, isUnread := l.unread(t, "m")
	if !isUnread || d.Handed.Happened() || d.Woken.At != 70 || d.Woken.Via != mail.ViaMod {
		t.Errorf("unread %t, handed %+v, woken %+v", isUnread, d.Handed, d.Woken)
	}
	const begins = "the turn did not begin ä"
	if got := d.Woken.Evidence; !strings.HasPrefix(got, begins) || len([]rune(got)) != maxReasonChars {
		t.Errorf("the reason %q has %d characters", got, len([]rune(got)))
	}
	if err := l.DB.Close(); err != nil {
		t.Fatal(err)
	}
	if l.GiveUp(t.Context(), "p1", "m", "why") == nil || l.Unseen(t.Context(), "p1", "m") == nil {
		t.Error("a closed store took it")
	}
}

func TestMSG_06_AllUnseenMailIsUnreadAgain(t *testing.T) {
	l, _ := ledgerAt(t, "a", "b")
	l.record(t, bridge.StageHanded, "a", 5, mail.ViaWakeHook)
	l.record(t, bridge.StageHanded, "b", 5, mail.ViaWakeHook)
	if err := l.Unseen(t.Context(), "p1", "a", "b"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if d, isUnread := l.unread(t, id); !isUnread || d.Handed.Happened() {
			t.Errorf("%s: unread %t, handed %+v", id, isUnread, d.Handed)
		}
	}
}

func TestMSG_06_AProcessThatHasNotConnectedYetIsExpected(t *testing.T) {
	own := proc.Name(os.Getpid())
	reused := proc.Named{Name: own.Name + "0", PID: own.PID, Since: 9}
	here := Running([]proc.Named{own, reused}, map[string]bool{"1:of another": true})
	if !here.Expected(own.Name) || here.Expected("1:of another") || here.Expected(reused.Name) {
		t.Errorf("expected: this process %t, another %t, one that has ended %t", here.Expected(own.Name), here.Expected("1:of another"), here.Expected(reused.Name))
	}
	if here = Running([]proc.Named{own}, map[string]bool{own.Name: true}); here.Expected(own.Name) {
		t.Error("a process that has connected is expected")
	}
	none := Running([]proc.Named{reused}, nil)
	if fact := (mail.Fact{At: 1, Process: reused.Name}); none.HandedEarlier(fact) != (&mail.Processes{}).HandedEarlier(fact) {
		t.Error("an ended process counts as running")
	}
}

func openPrefs(t *testing.T, home config.Home) (*Prefs, error) {
	t.Helper()
	return OpenPrefs(config.Shared{Home: home, Now: time.Now})
}

func TestMSG_03_AChoiceOutlivesTheBroker(t *testing.T) {
	home, err := config.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	prefs, err := openPrefs(t, home)
	if err != nil {
		t.Fatal(err)
	}
	if _, chosen := prefs.Get("p1"); chosen {
		t.Error("a choice that nobody made")
	}
	for peer, enabled := range map[string]bool{"p1": true, "p2": false} {
		if err := prefs.Set(peer, enabled); err != nil {
			t.Fatal(err)
		}
	}
	if prefs, err = openPrefs(t, home); err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]bool{"p1": true, "p2": false} {
		if enabled, chosen := prefs.Get(peer); !chosen || enabled != want {
			t.Errorf("%s: %t, %t", peer, enabled, chosen)
		}
	}
	if err := os.Remove(home.AutoWake()); err != nil {
		t.Fatal(err)
	}
	if err := prefs.Set("p1", true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home.AutoWake()); err == nil {
		t.Error("a choice that is the present one was written again")
	}
	if err := prefs.Set("p1", false); err != nil {
		t.Fatal(err)
	}
	if prefs, err = openPrefs(t, home); err != nil {
		t.Fatal(err)
	}
	if enabled, chosen := prefs.Get("p1"); !chosen || enabled {
		t.Errorf("changed: %t, %t", enabled, chosen)
	}
}

func TestVER_06_AnUnreadableFileStaysAndIsReadAgain(t *testing.T) {
	home, err := config.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	const damaged = `{"version": 1, "sessions": {"p1": tr`
	if err := os.WriteFile(home.AutoWake(), []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	prefs, err := openPrefs(t, home)
	if bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("opened: %v", err)
	}
	err = prefs.Set("p1", true)
	if bridge.CodeOf(err) != bridge.Storage || !strings.HasPrefix(err.Error(), "auto-wake was not changed") {
		t.Errorf("set: %v", err)
	}
	if data, err := os.ReadFile(home.AutoWake()); err != nil || string(data) != damaged {
		t.Errorf("the file is now %s, %v", data, err)
	}
	if _, chosen := prefs.Get("p1"); chosen {
		t.Error("a choice that was not stored is in effect")
	}
	if err := os.WriteFile(home.AutoWake(), []byte(`{"version": 1, "sessions": {"p2": true}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prefs.Set("p1", true); err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"p1", "p2"} {
		if enabled, chosen := prefs.Get(peer); !enabled || !chosen {
			t.Errorf("%s: %t, %t", peer, enabled, chosen)
		}
	}
}

func TestMSG_03_AChoiceThatIsNotWrittenIsNotInEffect(t *testing.T) {
	home, err := config.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	prefs, err := openPrefs(t, home)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(home.AutoWake(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := prefs.Set("p1", true); err == nil {
		t.Error("written over a folder")
	}
	if _, chosen := prefs.Get("p1"); chosen {
		t.Error("a choice that was not stored is in effect")
	}
}
