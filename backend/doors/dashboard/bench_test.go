package dashboard

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/platform/config"
	"bridge/backend/storage/store"
)

// The size that the state endpoint must stay quick at.
const (
	benchPeers    = 56
	benchMessages = 8_000
)

// BenchmarkState measures GET /api/state over loopback with 56 sessions and
// 8,000 messages: when nothing changed, and when every request meets a new
// revision. The 95th percentile is reported as p95-ms.
func BenchmarkState(b *testing.B) {
	broker, server, request := benchServer(b)
	for name, before := range map[string]func(){"unchanged": func() {}, "every request a new revision": broker.changed} {
		b.Run(name, func(b *testing.B) { measure(b, server, request("/api/state"), before) })
	}
}

// BenchmarkArchiveSearch measures a search that finds nothing in 8,000 messages.
func BenchmarkArchiveSearch(b *testing.B) {
	_, server, request := benchServer(b)
	measure(b, server, request("/api/archive/messages?query=nowhere"), func() {})
}

func measure(b *testing.B, server *httptest.Server, request *http.Request, before func()) {
	var times []time.Duration
	for b.Loop() {
		before()
		start := time.Now()
		response, err := server.Client().Do(request)
		if err != nil {
			b.Fatal(err)
		}
		size, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("status %d, %d bytes, %v", response.StatusCode, size, err)
		}
		times = append(times, time.Since(start))
		b.SetBytes(size)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "p95-ms")
}

func benchServer(b *testing.B) (*liveBroker, *httptest.Server, func(string) *http.Request) {
	log := slog.New(slog.DiscardHandler)
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "bridge.db"), store.Options{Now: time.Now, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	broker := newLiveBroker(db, time.Now)
	fill(b, db, broker)
	board := New(Options{
		Secret:  func() (config.Secret, error) { return testSecret, nil },
		Tickets: guard.NewTickets(time.Now),
		Reader:  func(context.Context) (Reader, error) { return db, nil },
		Broker:  broker, Now: time.Now, Log: log,
	})
	server := httptest.NewServer(board)
	b.Cleanup(func() { _ = board.Close(); server.Close() })
	value, err := board.guard.NewCookie()
	if err != nil {
		b.Fatal(err)
	}
	return broker, server, func(path string) *http.Request {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: guard.CookieName, Value: value})
		return r
	}
}

// fill stores the sessions and messages, every message with its later stages.
func fill(b *testing.B, db *store.DB, broker *liveBroker) {
	var people []bridge.Address
	for i := range benchPeers {
		kind := bridge.Kinds()[i%4]
		s := session.Session{ID: fmt.Sprintf("peer-%02d", i), Kind: kind, Name: fmt.Sprintf("%s-%02d", kind, i), SessionID: fmt.Sprintf("host-%02d", i), Cwd: "/src"}
		broker.join(b, s)
		people = append(people, s.Address())
	}
	body := strings.Repeat("some words of a message ", 20)
	for i := range benchMessages {
		from, address := people[i%benchPeers], people[(i*7+1)%benchPeers]
		message := bridge.Message{
			ID: fmt.Sprintf("m%05d", i), Recipient: address.ID, From: from, To: address.Name,
			ConversationID: "c", Body: body, CreatedAt: int64(i + 1),
		}
		if _, _, err := db.Append(b.Context(), []bridge.Message{message}); err != nil {
			b.Fatal(err)
		}
		if i%2 == 0 {
			continue
		}
		mark := []mail.Mark{{MessageID: message.ID, Recipient: address.ID, At: int64(i + 2), Evidence: "hook Stop"}}
		for _, stage := range []bridge.Stage{bridge.StageHanded, bridge.StageConsumed} {
			if err := db.Record(b.Context(), stage, mark); err != nil {
				b.Fatal(err)
			}
		}
	}
}
