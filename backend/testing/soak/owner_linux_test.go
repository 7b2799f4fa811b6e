package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// queueScript stands for codex: what its queue takes is written to a file for
// each thread. Some messages it refuses, and at some it dies, before or after
// it took them.
const queueScript = `#!/bin/sh
[ "$1" = queue ] || { echo "codex 0.169.0"; exit 0; }
case "$5" in *3\]) exit 1;; *7\]) kill -9 $$;; esac
printf '%%s\n' "$5" >> %q/"$3"
case "$5" in *9\]) kill -9 $$;; esac
`

// ownerPage is the owner's page without a browser; brokers come and go behind
// it.
type ownerPage struct {
	w      *world
	client *http.Client

	mu   sync.Mutex
	base string // of the broker that served last

	queued, unconfirmed, failed int // answers, guarded by mu
}

func newOwnerPage(w *world) *ownerPage {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	p := &ownerPage{w: w, client: &http.Client{Jar: jar, Timeout: settle}}
	w.await("the page opens", settle, p.open)
	return p
}

// ended counts the messages whose fate is known, also when that is not to know it.
func (p *ownerPage) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued + p.unconfirmed + p.failed
}

// open finds the broker that serves now and signs in to it.
func (p *ownerPage) open() bool {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "url", "--home", p.w.home.Dir()).Output()
	link := strings.TrimSpace(string(out))
	base, _, ok := strings.Cut(link, "/launch?")
	if err != nil || !ok {
		return false
	}
	answer, err := p.client.Get(link)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = base
	return answer.StatusCode == http.StatusOK
}

// writes sends one message. It is repeated only when it certainly went nowhere,
// as a person would: what is unclear stays so.
func (p *ownerPage) writes(to *actor, token string) {
	body, err := json.Marshal(map[string]string{"body": "from the owner [" + token + "]"})
	if err != nil {
		p.w.Error(err)
		return
	}
	for deadline := time.Now().Add(3 * settle); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		state, nowhere := p.post(to.name, body)
		if nowhere {
			p.open()
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		switch state {
		case "queued":
			p.queued++
			p.w.mu.Lock()
			p.w.sent[token] = to.name
			p.w.mu.Unlock()
		case "unconfirmed":
			p.unconfirmed++
		default:
			p.failed++ // the connection broke, or the broker failed: nobody knows
		}
		return
	}
	p.w.Errorf("%s could not be sent", token)
}

// post answers the state that the page would show. nowhere says that nothing was
// taken: no connection was made, or the request was refused.
func (p *ownerPage) post(name string, body []byte) (state string, nowhere bool) {
	p.mu.Lock()
	base := p.base
	p.mu.Unlock()
	r, err := http.NewRequest(http.MethodPost, base+"/api/sessions/"+name+"/message", bytes.NewReader(body))
	if err != nil {
		p.w.Error(err)
		return "", false
	}
	r.GetBody = nil // Go itself must not repeat it
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-bridge", "1")
	answer, err := p.client.Do(r)
	if err != nil {
		return "", errors.Is(err, syscall.ECONNREFUSED)
	}
	defer answer.Body.Close()
	var said struct{ State string }
	if json.NewDecoder(answer.Body).Decode(&said) != nil {
		return "", false
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return said.State, false
	case http.StatusTooManyRequests, http.StatusNotFound, http.StatusForbidden, http.StatusServiceUnavailable:
		return "", true
	default:
		return "", false
	}
}

// TestCHT_06_TheOwnersWordsArriveOnceOrAreUnconfirmed: brokers and sessions die
// at random while the owner writes to all of them.
func TestCHT_06_TheOwnersWordsArriveOnceOrAreUnconfirmed(t *testing.T) {
	total := testkit.Rounds(t, 100, 400) // the page may send a hundred in a minute; more wait for the next one
	queues := t.TempDir()
	codex := filepath.Join(t.TempDir(), "codex")
	if err := testkit.WriteProgram(codex, fmt.Appendf(nil, queueScript, queues), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRIDGE_CODEX_BIN", codex)
	w := newWorld(t)
	page := newOwnerPage(w)
	ending := w.readers()
	var writing sync.WaitGroup
	const writers = 4
	for i := range writers {
		writing.Go(func() {
			for n := i; n < total; n += writers {
				page.writes(w.actors[rand.IntN(sessions)], fmt.Sprintf("tok-owner-%d", n))
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	deaths := w.killUntil(written, page.ended, kills(t, 1_000))
	ending()

	w.readQueues(queues)
	w.drained()
	w.readQueues(queues) // nothing comes there any more
	allowed := w.noneTwice()
	w.quiet()
	w.Logf("%d deaths; of %d messages %d queued, %d unconfirmed, %d unanswered; %d arrivals, %d allowed repeats after a session's death",
		deaths, total, page.queued, page.unconfirmed, page.failed, len(w.seen), allowed)
	if got := page.queued + page.unconfirmed + page.failed; got != total {
		t.Errorf("%d of %d messages have an end", got, total)
	}
	if page.queued < total/2 {
		t.Errorf("only %d of %d messages were taken", page.queued, total)
	}
}

// readers is the load without anybody who sends.
func (w *world) readers() (ending func()) {
	stop, cancel := context.WithCancel(context.Background())
	w.stop = stop
	for _, a := range w.actors {
		w.running.Go(a.readsInbox)
		if a.kind == bridge.Claude {
			w.running.Go(a.hooks)
		}
	}
	return func() {
		cancel()
		w.running.Wait()
	}
}

// betweenDeaths is how many messages at least have an end between two deaths:
// where the machine is slow, most would be cut off otherwise.
const betweenDeaths = 12

// killUntil kills a broker or a session again and again, at most so often.
func (w *world) killUntil(over <-chan struct{}, ended func() int, most int) (deaths int) {
	for last := 0; ; {
		select {
		case <-over:
			return deaths
		case <-time.After(rand.N(200 * time.Millisecond)):
		}
		if ended() < last+betweenDeaths {
			continue
		}
		last = ended()
		switch {
		case deaths == most:
			<-over
			return deaths
		case rand.IntN(2) == 0:
			w.killBroker()
		default:
			w.actors[rand.IntN(sessions)].replace()
		}
		deaths++
	}
}

// readQueues counts what the stand-in of codex took, once for each time.
func (w *world) readQueues(dir string) {
	w.mu.Lock()
	for key, seen := range w.seen {
		kept := seen[:0]
		for _, s := range seen {
			if s.how != "queue" {
				kept = append(kept, s)
			}
		}
		if w.seen[key] = kept; len(kept) == 0 {
			delete(w.seen, key)
		}
	}
	w.mu.Unlock()
	for _, a := range w.actors {
		taken, err := os.ReadFile(filepath.Join(dir, "host-"+a.name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.Fatal(err)
		}
		a.saw(string(taken), 0, "queue")
	}
}
