package exchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	base = int64(1_000_000_000)
	most = 8
	step = int64(10_000) // between two messages
)

// talkOf returns talks in which two sessions have answered each other n times.
func talkOf(n int) (talks *Talks, now int64) {
	talks, now = &Talks{}, base
	for i := range n {
		now = base + int64(i)*step
		from := []string{"web", "api"}[i%2]
		talks.Sent(from, PairOf("web", "api").Other(from), now)
	}
	return talks, now
}

func TestQUI_02_WhichPairsHaveExchangedTooMuch(t *testing.T) {
	card := func(n int) []Exchange {
		return []Exchange{{Pair: PairOf("web", "api"), Messages: n, Since: base + most*step}}
	}
	none, two := []Exchange{}, 2
	for _, tt := range []struct {
		name  string
		sent  int // answers of one another
		then  func(talks *Talks, now int64) (later int64)
		limit *int // nil for most
		want  []Exchange
	}{
		{name: "nobody", want: none},
		{name: "as many as allowed", sent: most, want: none},
		{name: "one more", sent: most + 1, want: card(most + 1)},
		{name: "a card for the pair, not for each message", sent: most + 5, want: card(most + 5)},
		{name: "the setting is off", sent: most + 5, limit: new(int), want: none},
		{name: "another limit", sent: 3, limit: &two, want: []Exchange{{Pair: PairOf("api", "web"), Messages: 3, Since: base + 2*step}}},
		{
			name: "the owner's words or a tool of one start anew", sent: most + 1,
			then: func(talks *Talks, now int64) int64 {
				if !talks.Reset("api") {
					t.Error("the card's end was not reported")
				}
				return now
			}, want: none,
		},
		{
			name: "a tool of another session does not", sent: most + 1,
			then: func(talks *Talks, now int64) int64 {
				if talks.Reset("docs") {
					t.Error("a card's end was reported")
				}
				return now
			}, want: card(most + 1),
		},
		{
			name: "the count is anew after the owner's decision", sent: most + 1,
			then: func(talks *Talks, now int64) int64 {
				talks.Forget(PairOf("web", "api"))
				for range most {
					talks.Sent("web", "api", now)
				}
				return now
			}, want: none,
		},
		{
			name: "messages of long ago do not count", sent: most + 1,
			then: func(_ *Talks, _ int64) int64 { return base + Window.Milliseconds() }, want: none,
		},
		{
			name: "a moment before they do", sent: most + 1,
			then: func(_ *Talks, _ int64) int64 { return base + Window.Milliseconds() - 1 }, want: card(most + 1),
		},
		{
			name: "messages of a clock that was set back do not count", sent: most + 1,
			then: func(_ *Talks, _ int64) int64 { return base }, want: none,
		},
		{
			name: "with others they do not add up", sent: most,
			then: func(talks *Talks, now int64) int64 {
				talks.Sent("docs", "web", now)
				talks.Sent("web", "docs", now)
				return now
			}, want: none,
		},
		{
			name: "notes of one side alone are no exchange",
			then: func(talks *Talks, _ int64) int64 {
				for range most + 5 {
					talks.Sent("web", "api", base)
				}
				return base
			}, want: none,
		},
		{
			name: "words to oneself", sent: 0,
			then: func(talks *Talks, _ int64) int64 {
				for range most + 5 {
					talks.Sent("web", "web", base)
				}
				return base
			}, want: none,
		},
		{
			name: "another id of a session takes them along", sent: most + 1,
			then: func(talks *Talks, now int64) int64 {
				talks.Move("web", "zoo")
				return now
			}, want: []Exchange{{Pair: PairOf("zoo", "api"), Messages: most + 1, Since: base + most*step}},
		},
		{
			name: "and adds them to those that it has", sent: most,
			then: func(talks *Talks, now int64) int64 {
				talks.Sent("zoo", "api", now+step)
				talks.Move("zoo", "web")
				return now + step
			}, want: card(most + 1),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limit := most
			if tt.limit != nil {
				limit = *tt.limit
			}
			talks, now := talkOf(tt.sent)
			talks.Over(now, limit) // somebody looked
			if tt.then != nil {
				now = tt.then(talks, now)
			}
			if diff := cmp.Diff(tt.want, talks.Over(now, limit)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A card that is over comes again as another one.
func TestQUI_02_ALaterExchangeIsAnotherCard(t *testing.T) {
	talks, now := talkOf(most + 1)
	first := talks.Over(now, most)
	talks.Reset("web")
	if over := talks.Over(now, most); len(over) != 0 {
		t.Fatalf("after the owner's words there is %+v", over)
	}
	for i := range int64(most + 1) {
		now += step
		from := []string{"web", "api"}[i%2]
		talks.Sent(from, PairOf("web", "api").Other(from), now)
	}
	second := talks.Over(now, most)
	if len(first) != 1 || len(second) != 1 || first[0].Since == second[0].Since {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestQUI_02_TheCountsAreBounded(t *testing.T) {
	t.Run("in messages", func(t *testing.T) {
		talks := &Talks{}
		for i := range 5000 {
			talks.Sent([]string{"web", "api"}[i%2], []string{"api", "web"}[i%2], base)
		}
		over := talks.Over(base, most)
		if len(over) != 1 || over[0].Messages != mostKept {
			t.Errorf("%+v, want %d messages", over, mostKept)
		}
	})
	t.Run("in pairs, the latest stay", func(t *testing.T) {
		talks := &Talks{}
		for i := range mostPairs + 10 {
			talks.Sent("web", fmt.Sprint(i), base+int64(i))
		}
		if len(talks.talks) != mostPairs || talks.talks[PairOf("web", "0")] != nil || talks.talks[PairOf("web", fmt.Sprint(mostPairs+9))] == nil {
			t.Errorf("%d pairs are kept", len(talks.talks))
		}
		if talks.Over(base+2*Window.Milliseconds(), most); len(talks.talks) != 0 {
			t.Errorf("%d pairs without messages are kept", len(talks.talks))
		}
	})
}

func TestQUI_02_PairsOfSessions(t *testing.T) {
	pair := PairOf("b", "a")
	if pair != (Pair{"a", "b"}) || !pair.Has("a") || pair.Has("c") || pair.Other("a") != "b" || pair.Other("b") != "a" {
		t.Errorf("%+v", pair)
	}
	if moved := pair.Moved("a", "z"); moved != (Pair{"b", "z"}) {
		t.Errorf("moved to %+v", moved)
	}
	if same := pair.Moved("x", "z"); same != pair {
		t.Errorf("moved to %+v", same)
	}
	if Window != 15*time.Minute {
		t.Errorf("the window is %s", Window)
	}
}
