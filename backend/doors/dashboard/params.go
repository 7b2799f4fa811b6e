package dashboard

import (
	"maps"
	"net/http"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/httpjson"
)

// params lists the query parameters of each read address by its pattern. An address
// that is not listed takes none.
var params = map[string][]string{
	"/api/decisions":                 {"q", "scope"},
	"/api/decisions/{topic}/history": {"q", "scope"},
	"/api/activity":                  {"since"},
	"/api/state":                     {"since"},
	"/api/archive/messages":          {"query", "before", "limit"},
	"/api/search":                    {"q", "kind", "from", "after", "before", "limit", "cursor"},
	"/api/runs/{run}":                {"from"},
	"/api/runs/{run}/diff":           {"since"},
	"/api/models":                    {"agent"},
	"/api/usage":                     {"agent"},
	"/api/messages":                  {"peer", "before", "limit"},
}

// checkParams refuses unknown parameters: an ignored one would seem to have an
// effect.
func checkParams(pattern string, r *http.Request) error {
	values, err := httpjson.Params(r)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(params[pattern], name) {
			return bridge.Errorf(bridge.Invalid, "this address takes no parameter %q", name)
		}
	}
	return nil
}
