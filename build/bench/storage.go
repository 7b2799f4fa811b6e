package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bridge/backend/platform/ipc"
)

// storage measures the care of a large store: search, the snapshot, the doctor
// and the archive, and what sends feel of them.
func (l *lab) storage(ctx context.Context) (err error) {
	messages := 1_000_000
	if l.quick {
		messages = 20_000
	}
	b, err := l.start(ctx, "storage")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	clients, err := b.session(ctx, "from", "to")
	if err != nil {
		return err
	}
	vocabulary := newVocabulary()
	if err := b.write(ctx, clients[0], vocabulary, messages); err != nil {
		return err
	}
	began := time.Now()
	if err := b.settled(ctx); err != nil {
		return err
	}
	l.add(row{what: fmt.Sprintf("index of %d messages", messages), measured: fmt.Sprintf("%.0f bytes and %s each, store %.0f bytes",
		float64(sizeOf(b.home.History()))/float64(messages), time.Since(began)/time.Duration(messages), float64(sizeOf(b.home.DB()))/float64(messages))})
	if err := l.searches(ctx, b, vocabulary); err != nil {
		return err
	}
	if err := l.snapshot(ctx, b, clients[0]); err != nil {
		return err
	}
	if err := l.doctor(ctx, b); err != nil {
		return err
	}
	return l.archive(ctx, b, clients[0], messages)
}

// vocabulary writes messages as people do: few words often, many seldom.
type vocabulary struct {
	random *rand.Rand
	zipf   *rand.Zipf
	terms  []string
}

func newVocabulary() *vocabulary {
	const size = 50_000
	v := &vocabulary{random: rand.New(rand.NewPCG(1, 2))}
	letters := []rune("etaoinshrdlucmfwypvbgkjqxzéß")
	for range size {
		term := make([]rune, 2+v.random.IntN(9))
		for i := range term {
			term[i] = letters[min(v.random.IntN(len(letters)), v.random.IntN(len(letters)))]
		}
		v.terms = append(v.terms, string(term))
	}
	v.zipf = rand.NewZipf(v.random, 1.1, 2, size-1)
	return v
}

// text is about 512 bytes.
func (v *vocabulary) text() string {
	var text strings.Builder
	for text.Len() < len(body) {
		text.WriteString(v.terms[v.zipf.Uint64()])
		text.WriteByte(' ')
	}
	return text.String()
}

// write stores n old messages that were read, as earlier days would have left
// them.
func (b *running) write(ctx context.Context, client *ipc.Client, v *vocabulary, n int) error {
	if err := sendTo(ctx, client, "to"); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+b.home.DB()+"?_pragma=busy_timeout(600000)&_pragma=synchronous(OFF)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	const step = 10_000
	for done := 0; done < n; done += step {
		if err := writeSome(ctx, db, v, done, min(done+step, n)); err != nil {
			return fmt.Errorf("write messages: %w", err)
		}
	}
	return nil
}

func writeSome(ctx context.Context, db *sql.DB, v *vocabulary, from, to int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	insert, err := tx.PrepareContext(ctx, `INSERT INTO messages (id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at)
		VALUES (printf('01900000-%08x', ?1), 'past-' || (?1 % 50), 'past-' || ((?1 + 1) % 50), 'past', 'codex', 'past', printf('c-%d', ?1 / 10), NULL, 0, ?2, 1700000000000 + ?1, 1700000000000 + ?1)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := from; i < to; i++ {
		if _, err := insert.ExecContext(ctx, i, v.text()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// settled waits until the search index has everything, so that nothing is
// measured beside it. A commit tells it to look.
func (b *running) settled(ctx context.Context) error {
	client, base, err := b.page(ctx)
	if err != nil {
		return err
	}
	if err := b.touch(ctx); err != nil {
		return err
	}
	for {
		behind, err := behindOf(ctx, client, base)
		if err != nil || behind == 0 {
			return err
		}
		if ipc.Pause(ctx, time.Second/2); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// touch commits something.
func (b *running) touch(ctx context.Context) error {
	clients, err := b.session(ctx, "toucher")
	if err != nil {
		return err
	}
	return sendTo(ctx, clients[0], "toucher")
}

func behindOf(ctx context.Context, client *http.Client, base string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/search?q=anything&limit=1", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		return 1, nil // it is being opened
	}
	var answer struct {
		Behind int64 `json:"behind"` // rows
	}
	return answer.Behind, json.NewDecoder(response.Body).Decode(&answer)
}

// searches measures pieces of text and words of every kind: common, seldom,
// missing, short, with signs that mean nothing.
func (l *lab) searches(ctx context.Context, b *running, v *vocabulary) error {
	get, err := b.browser(ctx)
	if err != nil {
		return err
	}
	var pieces, terms []string
	for _, rank := range []int{0, 3, 30, 300, 3_000, 30_000} {
		term := v.terms[rank]
		terms = append(terms, term, term+" "+v.terms[rank+1], `"`+v.terms[0]+" "+term+`"`)
		pieces = append(pieces, term, term+" "+v.terms[rank/2], term+term+term, string([]rune(term)[1:]))
	}
	pieces = append(pieces, "e", "é", "ß", "q", "Q", "zz", "xq", "%", "_", "a%", "☃", "nowhere at all", "QQQ")
	terms = append(terms, "nowhere", "e", "x", "☃ "+v.terms[1])
	rounds := 10
	if l.quick {
		rounds = 3
	}
	measure := func(path string, queries []string) (elapsed times, err error) {
		for range rounds {
			for _, query := range queries {
				if elapsed, err = repeat(elapsed, 1, func() error { return get(path + url.QueryEscape(query)) }); err != nil {
					return nil, err
				}
			}
		}
		return elapsed, nil
	}
	literal, err := measure("/api/archive/messages?query=", pieces)
	if err != nil {
		return err
	}
	byWords, err := measure("/api/search?q=", terms)
	if err != nil {
		return err
	}
	l.add(row{what: "search of any piece of text", measured: fmt.Sprintf("%s p50, %s p95", literal.at(0.5), literal.at(0.95)), value: millis(literal.at(0.95)), goal: "p95 < 150 ms", bound: 150})
	l.add(row{what: "full-text search", measured: fmt.Sprintf("%s p50, %s p95", byWords.at(0.5), byWords.at(0.95)), value: millis(byWords.at(0.95)), goal: "p95 < 20 ms", bound: 20})
	return nil
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }

// during runs a command and sends a message every few milliseconds meanwhile.
func (b *running) during(ctx context.Context, client *ipc.Client, cmd *exec.Cmd) (took time.Duration, sends times, err error) {
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		took = time.Since(start)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			return took, sends, err
		default:
		}
		if sends, err = sendAndPause(ctx, client, sends); err != nil {
			return 0, nil, errors.Join(err, <-done)
		}
	}
}

func sendAndPause(ctx context.Context, client *ipc.Client, elapsed times) (times, error) {
	elapsed, err := repeat(elapsed, 1, func() error { return sendTo(ctx, client, "to") })
	ipc.Pause(ctx, 5*time.Millisecond)
	return elapsed, err
}

func (b *running) command(ctx context.Context, env string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.lab.binary, append(args, "--home", b.home.Dir())...)
	cmd.Env = append(os.Environ(), env)
	return cmd
}

// databases are the files of the store that are there.
func (b *running) databases() (paths []string) {
	for _, path := range []string{b.home.DB(), b.home.Archive(), b.home.History()} {
		if sizeOf(path) > 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

// snapshot measures a full snapshot against copying and hashing the same bytes,
// in turns, and what the sends feel of it, against sends in the same rhythm just
// before.
func (l *lab) snapshot(ctx context.Context, b *running, client *ipc.Client) error {
	var plain, snapshots, quiet, sends times
	var bytes int64
	for round := range 3 {
		bytes = 0
		start := time.Now()
		for i, path := range b.databases() {
			target := filepath.Join(l.dir, fmt.Sprintf("copy-%d-%d", round, i))
			for _, cmd := range []*exec.Cmd{exec.CommandContext(ctx, "cp", path, target), exec.CommandContext(ctx, "sha256sum", target)} {
				if err := cmd.Run(); err != nil {
					return fmt.Errorf("the baseline of the snapshot: %w", err)
				}
			}
			bytes += sizeOf(path)
		}
		plain = append(plain, time.Since(start))
		// What this turn left to write is not for the next one to wait for.
		if err := exec.CommandContext(ctx, "sync").Run(); err != nil {
			return fmt.Errorf("the baseline of the snapshot: %w", err)
		}
		for range 500 {
			var err error
			if quiet, err = sendAndPause(ctx, client, quiet); err != nil {
				return err
			}
		}
		took, felt, err := b.during(ctx, client, b.command(ctx, "", "doctor", "--backup"))
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		snapshots, sends = append(snapshots, took), append(sends, felt...)
	}
	l.add(row{
		what: fmt.Sprintf("snapshot of %.2f GiB", float64(bytes)/(1<<30)), measured: fmt.Sprintf("%s, cp and sha256sum %s", snapshots.at(0.5), plain.at(0.5)),
		value: ratio(snapshots.at(0.5), plain.at(0.5)), goal: "<= 1.5 x cp + sha256sum", bound: 1.5,
	})
	l.add(row{
		what: "sends during a snapshot, p99", measured: fmt.Sprintf("%s, quiet %s", sends.at(0.99), quiet.at(0.99)),
		value: ratio(sends.at(0.99), quiet.at(0.99)), goal: "<= 2 x quiet", bound: 2,
	})
	return nil
}

// doctor measures the whole report against the checks of the sqlite3 shell, where
// that is installed.
func (l *lab) doctor(ctx context.Context, b *running) error {
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: sqlite3 is not on PATH: the doctor is not measured")
		return nil //nolint:nilerr // the rest is measured
	}
	var plain, reports times
	for range 3 {
		if plain, err = repeat(plain, 1, func() error {
			for _, path := range b.databases() {
				if err := exec.CommandContext(ctx, shell, "-readonly", path, "PRAGMA integrity_check; PRAGMA foreign_key_check").Run(); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("the baseline of the doctor: %w", err)
		}
		if reports, err = repeat(reports, 1, func() error { return b.command(ctx, "", "doctor", "--json").Run() }); err != nil {
			return fmt.Errorf("doctor: %w", err)
		}
	}
	l.add(row{
		what: "doctor", measured: fmt.Sprintf("%s, sqlite3's checks %s", reports.at(0.5), plain.at(0.5)),
		value: ratio(reports.at(0.5), plain.at(0.5)), goal: "<= 1.3 x sqlite3", bound: 1.3,
	})
	return nil
}

// archive measures how quickly old messages move while others are sent.
func (l *lab) archive(ctx context.Context, b *running, client *ipc.Client, messages int) error {
	took, sends, err := b.during(ctx, client, b.command(ctx, "BRIDGE_ARCHIVE_AGE_MS=86400000", "doctor", "--archive", "--yes"))
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	rate := float64(messages) / took.Seconds()
	l.add(row{what: "archiving, with sends meanwhile", measured: fmt.Sprintf("%.0f rows/s", rate), value: rate, goal: ">= 50,000 rows/s", bound: 50_000, atLeast: true})
	l.add(row{what: "sends during the archiving, p99", measured: sends.at(0.99).String(), value: millis(sends.at(0.99)), goal: "< 20 ms", bound: 20})
	return nil
}
