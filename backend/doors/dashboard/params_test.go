package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"bridge/backend/doors/dashboard/guard"
)

// knownParams is written out: a new parameter, or a new address that is read,
// is added here or is refused.
var knownParams = map[string]string{
	"/api/decisions":                 "q scope",
	"/api/decisions/{topic}/history": "q scope",
	"/api/activity":                  "since",
	"/api/archive/messages":          "query before limit",
	"/api/search":                    "q kind from after before limit cursor",
	"/api/runs/{run}":                "from",
	"/api/messages":                  "peer before limit",
}

func TestSTO_12_DEC_20_ParametersThatNobodyKnowsAreRefusedByName(t *testing.T) {
	w := furnished(t)
	place := strings.NewReplacer("{topic}", "database", "{id}", "m1")
	for _, route := range w.board.routes {
		if route.kind != guard.Read {
			continue
		}
		path := place.Replace(route.pattern)
		for _, query := range []string{"x=1", "limits=5", "Limit=5", "x", "=1", "q%20=1"} {
			answer := w.get(path + "?" + query)
			refused(t, path+"?"+query, answer, http.StatusBadRequest)
			name, _, _ := strings.Cut(strings.ReplaceAll(query, "%20", " "), "=")
			if !strings.Contains(answer.body, `\"`+name+`\"`) {
				t.Errorf("%s?%s: the refusal %s does not name the parameter", path, query, answer.body)
			}
		}
		for _, name := range strings.Fields(knownParams[route.pattern]) {
			answer := w.get(path + "?" + name + "=1&" + name + "=1")
			refused(t, path+" with "+name+" twice", answer, http.StatusBadRequest)
			if !strings.Contains(answer.body, `\"`+name+`\" is given twice`) {
				t.Errorf("%s: the refusal %s does not name %s", path, answer.body, name)
			}
		}
	}
}

func TestSTO_12_NumbersAreWrittenOneWay(t *testing.T) {
	w := furnished(t)
	for path, names := range map[string]string{"/api/archive/messages?": "before limit", "/api/search?q=a&": "after before limit", "/api/messages?peer=claude-app&": "before limit"} {
		for _, name := range strings.Fields(names) {
			for _, number := range []string{"%2B5", "05", "+5", "5+", "-5", "-0", "00", "5.0", "0x5", "5_0", "", "%D9%A5"} {
				refused(t, path+name+"="+number, w.get(path+name+"="+number), http.StatusBadRequest)
			}
		}
		if got := w.get(path + "limit=5&before=0").status; got == http.StatusBadRequest {
			t.Errorf("%s: limit=5&before=0 is answered with %d", path, got)
		}
	}
}
