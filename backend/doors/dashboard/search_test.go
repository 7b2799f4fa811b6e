package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/search"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// found asks for words until the index has everything.
func (w *world) found(query string) dto.Search {
	w.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; {
		answer := w.get("/api/search?" + query)
		if answer.status != http.StatusServiceUnavailable { // the index is being opened
			if wire := decode[dto.Search](w.t, answer); wire.Behind == 0 {
				return wire
			}
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the index never had everything: %s", answer.body)
		}
	}
}

func TestSearchFindsWordsWithSnippetsAndLinks(t *testing.T) {
	w := furnished(t)
	w.append(bridge.Message{ID: "m?5", From: bridge.OwnerAddress(), To: "*", ConversationID: "c", Body: "<b>Use</b> SQLite, port 4777", CreatedAt: 1}, "peer-1", "peer-2")
	w.found("q=sqlite")
	golden(t, "search", w.get("/api/search?q=sqlite").body)
	for _, tt := range []struct {
		query string
		want  string // ids
	}{
		{"q=4777", "m2 m?5"},
		{"q=port+4777", "m?5"},
		{"q=SQLite&kind=decision", "d1"},
		{"q=SQLite&kind=message", "m?5"},
		{"q=sqlite&before=2", "m?5"},
		{"q=sqlite&limit=1", "d1"},
		{"q=nowhere", ""},
		{"q=" + url.QueryEscape(`"use sqlite" OR (`), ""},
		{"q=" + url.QueryEscape(`"use sqlite" -^*:{`), "d1"},
	} {
		var got []string
		for _, hit := range w.found(tt.query).Results {
			got = append(got, hit.ID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s finds %q, want %q", tt.query, got, tt.want)
		}
	}
}

func TestSearchRefusesWhatItCannotRead(t *testing.T) {
	w := furnished(t)
	for _, bad := range []string{
		"", "q=", "q=+", "q=%25_", "q=%22%22", "q=%FF", "q=a&limit=0", "q=a&limit=101", "q=a&limit=x", "q=a&limit=", "q=a&before=-1", "q=a&before=1.5",
		"q=a&kind=job", "q=a&kind=Message", "q=a&q=b", "q=%zz", "q=" + strings.Repeat("a", 1_001), "q=" + strings.Repeat("a+", 40),
	} {
		refused(t, bad, w.get("/api/search?"+bad), http.StatusBadRequest)
	}
}

func TestPGE_06_SearchFiltersByAuthorAndTime(t *testing.T) {
	w := furnished(t)
	say := func(id, name string, at int64, body string) {
		from := bridge.Address{ID: "peer-" + name, Name: name, Agent: bridge.Claude}
		w.append(bridge.Message{ID: id, From: from, To: "*", ConversationID: id, Body: body, CreatedAt: at}, "peer-2")
	}
	for n := range listPage + 3 { // more than one page, many in one millisecond
		say(fmt.Sprintf("x%04d", n), "other", 1_000_000+int64(n/100), "zebra noise")
	}
	say("a1", "api-9", 100, "the zebra crosses")
	say("a2", "api-9", 200, "a lion sleeps")
	say("a3", "api-9", 2_000_000, "the zebra is back")
	w.found("q=zebra")
	for _, tt := range []struct {
		query string
		want  string // ids
	}{
		{"q=zebra&from=api-9&before=2000000", "a1"},
		{"q=zebra&from=API-9", "a3 a1"},
		{"q=zebra&from=api-9&after=101", "a3"},
		{"q=zebra&after=2000000", "a3"},
		{"q=zebra&after=2000001", ""},
		{"from=api-9", "a3 a2 a1"},
		{"q=+&from=api-9", "a3 a2 a1"},
		{"from=api-9&limit=2", "a3 a2"},
		{"from=api-9&kind=message&after=200&before=2000000", "a2"},
		{"after=2000000", "a3"},
		{"from=nobody", ""},
	} {
		var got []string
		for _, hit := range w.found(tt.query).Results {
			got = append(got, hit.ID)
		}
		if tt.query == "q=zebra&from=API-9" { // ranked: their order is not ours to say
			slices.Sort(got)
			slices.Reverse(got)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s finds %q, want %q", tt.query, got, tt.want)
		}
	}
	first := w.found("from=api-9&limit=2")
	if rest := w.found("from=api-9&limit=2&cursor=" + first.Next); len(rest.Results) != 1 || rest.Results[0].ID != "a1" || rest.Next != "" {
		t.Errorf("the second page is %+v, want a1 and no more", rest)
	}
	for _, bad := range []string{"from=", "q=a&after=13:30", "q=a&after=-1", "from=api-9&kind=run", "from=api-9&kind=decision", "before=5"} {
		refused(t, bad, w.get("/api/search?"+bad), http.StatusBadRequest)
	}
}

// Without an index the search says so; the rest of the page works.
func TestSearchWithoutAnIndexSaysSo(t *testing.T) {
	w := newWorld(t)
	plain, err := store.OpenReader(t.Context(), w.path())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	w.board.sources.open = func(context.Context) (Reader, error) { return plain, nil }
	refused(t, "no index", w.get("/api/search?q=a"), http.StatusServiceUnavailable)
	decode[dto.Archive](t, w.get("/api/archive/messages?query=a"))
}

func TestSearchGives20HitsUnlessAskedForMore(t *testing.T) {
	w := newWorld(t)
	for n := range usualHits + 1 {
		w.append(bridge.Message{ID: fmt.Sprintf("m%d", n), From: bridge.OwnerAddress(), To: "*", ConversationID: "c", Body: "common", CreatedAt: 1}, "peer-1")
	}
	for query, want := range map[string]int{"q=common": 20, "q=common&limit=21": 21, "q=common&limit=100": 21} {
		if got := len(w.found(query).Results); got != want {
			t.Errorf("%s gives %d hits, want %d", query, got, want)
		}
	}
}

func TestSearchGoesOnWhereAPageEnded(t *testing.T) {
	w := newWorld(t)
	say := func(id string, at int64) {
		w.append(bridge.Message{ID: id, From: bridge.OwnerAddress(), To: "*", ConversationID: "c", Body: "common", CreatedAt: at}, "peer-1")
	}
	now := w.clock.Now().UnixMilli()
	for n := range 250 {
		say(fmt.Sprintf("m%03d", n), now-int64(n))
	}
	var got []string
	cursor := ""
	for pages := 1; pages <= 4; pages++ {
		page := w.found("q=common&limit=100" + cursor)
		for _, hit := range page.Results {
			got = append(got, hit.ID)
		}
		if pages == 1 {
			w.clock.Advance(time.Second)
			say("new", w.clock.Now().UnixMilli()) // it would push the rest down by one
			w.found("q=common&limit=1")
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
	slices.Sort(got)
	if len(got) != 250 || len(slices.Compact(got)) != 250 || got[0] != "m000" || got[249] != "m249" {
		t.Errorf("the pages hold %d hits, %d of them once", len(got), len(slices.Compact(slices.Clone(got))))
	}
	if page := w.found("q=common&limit=100&cursor=0.0"); len(page.Results) != 0 || page.Next != "" {
		t.Errorf("before the epoch there are %d hits, next %q", len(page.Results), page.Next)
	}
	for _, bad := range []string{"cursor=", "cursor=1", "cursor=1.", "cursor=.1", "cursor=-1.5", "cursor=%2B1.5", "cursor=01.5", "cursor=1.5.6", "cursor=x.1", "cursor=10001.5", "cursor=1.5&before=9"} {
		refused(t, bad, w.get("/api/search?q=common&"+bad), http.StatusBadRequest)
	}
}

func TestAHitOfADecisionLinksToItsTopicWhateverItIsCalled(t *testing.T) {
	for topic, want := range map[string]string{"ports": "#/decisions/ports", "go/test?": "#/decisions/go%2Ftest%3F"} {
		hit := (&directory{}).hit(store.WordHit{Kind: search.Decision, Decision: decision.Revision{Topic: topic}}, search.Query{})
		if hit.Link != want {
			t.Errorf("%s: the link is %s, want %s", topic, hit.Link, want)
		}
	}
}
