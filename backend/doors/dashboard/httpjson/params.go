package httpjson

import (
	"math"
	"net/http"
	"net/url"
	"strconv"

	"bridge/backend/core/bridge"
)

// Params parses the query strictly, with Invalid for bad or repeated parameters:
// net/url drops bad ones, and of a repeated one only the first counts.
func Params(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bridge.Errorf(bridge.Invalid, "the query of the address is malformed")
	}
	for name, values := range values {
		if len(values) > 1 {
			return nil, bridge.Errorf(bridge.Invalid, "the parameter %q is given twice", name)
		}
	}
	return values, nil
}

// PageSpan is one page of a list, backwards in time.
type PageSpan struct {
	Before int64 // exclusive epoch milliseconds, 0 for no bound
	Limit  int
}

// ReadPage parses before and limit. It fails with Invalid for other values than whole numbers.
func ReadPage(values url.Values, usual, most int) (PageSpan, error) {
	span := PageSpan{Limit: usual}
	if values.Has("before") {
		before, ok := WholeNumber(values.Get("before"))
		if !ok {
			return PageSpan{}, bridge.Errorf(bridge.Invalid, "before must be a time in epoch milliseconds")
		}
		if span.Before = before; before == 0 {
			span.Before = math.MinInt64 // the epoch is an ordinary time: nothing came before it
		}
	}
	if values.Has("limit") {
		limit, ok := WholeNumber(values.Get("limit"))
		if !ok || limit < 1 || limit > int64(most) {
			return PageSpan{}, bridge.Errorf(bridge.Invalid, "limit must be a whole number from 1 to %d", most)
		}
		span.Limit = int(limit)
	}
	return span, nil
}

// WholeNumber parses decimal digits without a sign or leading zeros, so each number
// has one notation.
func WholeNumber(digits string) (number int64, ok bool) {
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, err == nil && number >= 0 && strconv.FormatInt(number, 10) == digits
}
