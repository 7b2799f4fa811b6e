package dashboard

import (
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"bridge/backend/bridge"
)

// params are the parameters of the addresses that are read, by their pattern. An
// address that does not stand here takes none.
var params = map[string][]string{
	"/api/decisions":                 {"q", "scope"},
	"/api/decisions/{topic}/history": {"q", "scope"},
	"/api/archive/messages":          {"query", "before", "limit"},
	"/api/search":                    {"q", "kind", "before", "limit", "cursor"},
	"/api/messages":                  {"peer", "before", "limit"},
}

// checkParams refuses what the address does not know: a parameter that is passed
// over in silence would seem to have counted.
func checkParams(pattern string, r *http.Request) error {
	given, err := readParams(r)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(params[pattern], name) {
			return bridge.Errorf(bridge.Invalid, "this address takes no parameter %q", name)
		}
	}
	return nil
}

// readParams parses the query strictly: net/url drops what it cannot read, and
// of a doubled parameter only the first would count.
func readParams(r *http.Request) (url.Values, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bridge.Errorf(bridge.Invalid, "the query of the address is malformed")
	}
	for name, values := range given {
		if len(values) > 1 {
			return nil, bridge.Errorf(bridge.Invalid, "the parameter %q is given twice", name)
		}
	}
	return given, nil
}

// pageSpan is one page of a list that goes back in time.
type pageSpan struct {
	before int64 // exclusive epoch milliseconds, 0 for no bound
	limit  int
}

// readPage reads before and limit.
func readPage(given url.Values, usual, most int) (pageSpan, error) {
	span := pageSpan{limit: usual}
	if given.Has("before") {
		before, ok := wholeNumber(given.Get("before"))
		if !ok {
			return pageSpan{}, bridge.Errorf(bridge.Invalid, "before must be a time in epoch milliseconds")
		}
		if span.before = before; before == 0 {
			span.before = math.MinInt64 // the epoch is a time like any other: nothing came before it
		}
	}
	if given.Has("limit") {
		limit, ok := wholeNumber(given.Get("limit"))
		if !ok || limit < 1 || limit > int64(most) {
			return pageSpan{}, bridge.Errorf(bridge.Invalid, "limit must be a whole number from 1 to %d", most)
		}
		span.limit = int(limit)
	}
	return span, nil
}

// wholeNumber reads decimal digits without a sign and without zeros before them:
// each number is written one way.
func wholeNumber(digits string) (number int64, ok bool) {
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, err == nil && number >= 0 && strconv.FormatInt(number, 10) == digits
}
