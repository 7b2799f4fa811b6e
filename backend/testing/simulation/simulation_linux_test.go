package simulation

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) {
	layDisks()
	debug.SetGCPercent(400) // each seed is soon over
	goleak.VerifyTestMain(m)
}

// seedEnv names the one seed to be replayed.
const seedEnv = "BRIDGE_SEED"

// template is a store with the sessions, and nothing else.
func template(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.db")
	db, err := store.Open(t.Context(), path, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sessions {
		peer := store.Peer{ID: "peer-" + name, Name: name, Agent: bridge.Claude, SessionID: "host-" + name, SeenAt: 1}
		if err := db.SavePeer(t.Context(), peer); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A clock that is set leaves spans alone, and what a simulated PC reads is no other time.
func TestPRF_03_AClockThatIsSetMeasuresSpansAsBefore(t *testing.T) {
	at := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	before, after := shift(at, 0), shift(at.Add(time.Minute), -time.Hour)
	if !before.Equal(at) || before.UnixNano() != at.UnixNano() {
		t.Errorf("%s became %s", at, before)
	}
	if span := after.Sub(before); span != time.Minute || !before.Before(after) {
		t.Errorf("a minute later it is %s later", span)
	}
	if wall := after.UnixMilli() - before.UnixMilli(); wall != -59*60*1000 {
		t.Errorf("the wall clock went on by %d ms", wall)
	}
}

// TestPRF_03_WhateverTheSeedEachMessageCrossesOnceAndDecisionsAgree runs one world a seed.
// A seed that failed is replayed with BRIDGE_SEED, and shows what happened and was logged.
func TestPRF_03_WhateverTheSeedEachMessageCrossesOnceAndDecisionsAgree(t *testing.T) {
	store := template(t)
	if text := os.Getenv(seedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: %v", seedEnv, text, err)
		}
		happened, wrong := simulate(t, seed, store, os.Stderr)
		t.Logf("seed %d\n%s", seed, strings.Join(happened, "\n"))
		for _, text := range wrong {
			t.Error(text)
		}
		return
	}
	var next, failed atomic.Uint64
	var tasks sync.WaitGroup
	rounds := uint64(testkit.Rounds(t, 200, 10_000))
	for range runtime.GOMAXPROCS(0) {
		tasks.Go(func() {
			for seed := next.Add(1) - 1; seed < rounds && failed.Load() < enough; seed = next.Add(1) - 1 {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					if _, wrong := simulate(t, seed, store, nil); len(wrong) > 0 {
						failed.Add(1)
						t.Errorf("replay it with %s=%d:\n%s", seedEnv, seed, strings.Join(wrong, "\n"))
					}
				})
			}
		})
	}
	tasks.Wait()
}

// enough seeds have failed to end the run: the others would mostly fail for the same reason.
const enough = 5
