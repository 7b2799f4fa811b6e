package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
)

// The benchmarks measure each operation and, in the same run and on the same
// disk, the floor under it: a single-row commit of plain SQLite with the same
// durability. They report ratios, because the disk decides the absolute times.

var benchBody = strings.Repeat("the quick brown fox jumps over ", 16) // 496 bytes

// rawStore commits single rows with nothing of ours around it.
type rawStore struct {
	pool   *sql.DB
	insert *sql.Stmt
}

func openRaw(b *testing.B) *rawStore {
	b.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(filepath.Join(b.TempDir(), "raw.db"), "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(1)
	if _, err := pool.Exec("CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	insert, err := pool.Prepare("INSERT INTO raw (body) VALUES (?1)")
	if err != nil {
		b.Fatal(err)
	}
	return &rawStore{pool, insert}
}

func (r *rawStore) commit(b *testing.B) time.Duration {
	begin := time.Now()
	if _, err := r.insert.Exec(benchBody); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func percentile(times []time.Duration, p float64) time.Duration {
	times = slices.Clone(times)
	slices.Sort(times)
	return times[min(len(times)-1, int(p*float64(len(times))))]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func benchSend(b *testing.B, db *DB, sender int, id string) time.Duration {
	send := note(id, fmt.Sprintf("sender-%d", sender), benchBody, time.Now().UnixMilli(), fmt.Sprintf("peer-%d", sender%8))
	begin := time.Now()
	if _, _, err := db.Append(context.Background(), send); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func benchID(b *testing.B) string {
	id, err := uuid.NewV7()
	if err != nil {
		b.Fatal(err)
	}
	return id.String()
}

// BenchmarkAppendAlone: one sender; p50 against p50.
func BenchmarkAppendAlone(b *testing.B) {
	db, raw := openTest(b), openRaw(b)
	var own, floor []time.Duration
	for b.Loop() {
		floor = append(floor, raw.commit(b))
		own = append(own, benchSend(b, db, 0, benchID(b)))
	}
	report(b, own, floor)
}

func report(b *testing.B, own, floor []time.Duration) {
	b.ReportMetric(micros(percentile(floor, 0.5)), "raw-p50-µs")
	b.ReportMetric(micros(percentile(own, 0.5)), "p50-µs")
	b.ReportMetric(micros(percentile(own, 0.99)), "p99-µs")
	b.ReportMetric(float64(percentile(own, 0.5))/float64(percentile(floor, 0.5)), "p50/raw")
}

// BenchmarkAppendTogether: 16 senders; rate against the rate of raw commits.
// Rounds of both alternate, because a shared machine changes its speed.
func BenchmarkAppendTogether(b *testing.B) {
	const senders, each, rawEach = 16, 64, 200
	db, raw := openTest(b), openRaw(b)
	var floor, took time.Duration
	var times []time.Duration
	for b.Loop() {
		for range rawEach {
			floor += raw.commit(b)
		}
		begin := time.Now()
		times = append(times, sendTogether(b, db, senders, each)...)
		took += time.Since(begin)
	}
	rounds := float64(b.N)
	rate, rawRate := rounds*senders*each/took.Seconds(), rounds*rawEach/floor.Seconds()
	b.ReportMetric(rawRate, "raw/s")
	b.ReportMetric(rate, "msgs/s")
	b.ReportMetric(rate/rawRate, "rate/raw")
	b.ReportMetric(micros(percentile(times, 0.5)), "p50-µs")
	b.ReportMetric(micros(percentile(times, 0.99)), "p99-µs")
	b.ReportMetric(micros(slices.Max(times)), "max-µs")
}

// sendTogether returns how long each of senders*each messages took.
func sendTogether(b *testing.B, db *DB, senders, each int) []time.Duration {
	times := make([][]time.Duration, senders)
	var group sync.WaitGroup
	for sender := range senders {
		group.Go(func() {
			for range each {
				times[sender] = append(times[sender], benchSend(b, db, sender, benchID(b)))
			}
		})
	}
	group.Wait()
	return slices.Concat(times...)
}

// fill stores count messages of 400 peers in one statement.
func fill(b *testing.B, path string, count int) {
	b.Helper()
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "_pragma=synchronous(OFF)", "_pragma=cache_size(-400000)"))
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO messages SELECT printf('0190%08x-0000-7000-8000-%012x', i, i), printf('peer-%d', i % 400), printf('sender-%d', i * 7 % 400),
			'someone', 'claude', 'target', printf('c-%d', i / 10), NULL, 1, ?2, 1700000000000 + i, CASE WHEN i % 50 THEN 1700000060000 + i END FROM n`, count, benchBody)
	if err != nil {
		b.Fatal(err)
	}
}

// benchSizes are the stores that are compared. The large one takes minutes and
// several gigabytes: BRIDGE_BENCH_MESSAGES sets it.
func benchSizes(b *testing.B) []int {
	large := 50_000
	if text := os.Getenv("BRIDGE_BENCH_MESSAGES"); text != "" {
		if _, err := fmt.Sscan(text, &large); err != nil {
			b.Fatal(err)
		}
	}
	return []int{5_000, large}
}

func openFilled(b *testing.B, count int) *DB {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bridge.db")
	db, err := Open(context.Background(), path, testOptions())
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	fill(b, path, count)
	return openAt(b, path)
}

// BenchmarkAppendToStored: one sender, by the number of messages stored.
func BenchmarkAppendToStored(b *testing.B) {
	for _, count := range benchSizes(b) {
		db, raw := openFilled(b, count), openRaw(b)
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			var own, floor []time.Duration
			sender := 0
			for b.Loop() {
				floor = append(floor, raw.commit(b))
				own = append(own, benchSend(b, db, sender%400, benchID(b)))
				sender++
			}
			report(b, own, floor)
		})
		b.Run(fmt.Sprint(count, "/reads"), func(b *testing.B) { benchReads(b, db) })
	}
}

func benchReads(b *testing.B, db *DB) {
	ctx := context.Background()
	reads := []struct {
		name string
		ask  func() error
	}{
		{"recent-200", func() error { _, err := db.Recent(ctx, bridge.RecentMessages); return err }},
		{"conversation-200", func() error { _, err := db.Conversation(ctx, "peer-7", 0, 200); return err }},
		{"unread-50", func() error { _, err := db.Unread(ctx, "peer-7", 50, nil); return err }},
		{"unread-counts", func() error { _, err := db.UnreadCounts(ctx); return err }},
		{"expire-nothing", func() error {
			_, err := db.Expire(ctx, ExpireRule{TTLBefore: 1000, QueuedBefore: 2000, Limit: 100})
			return err
		}},
	}
	for _, read := range reads {
		b.Run(read.name, func(b *testing.B) {
			for b.Loop() {
				if err := read.ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
