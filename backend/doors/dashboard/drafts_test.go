package dashboard

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/config"
)

func TestPGE_03_DraftsAreOnEveryPageOfTheHome(t *testing.T) {
	home, err := config.ResolveHome(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	file := &config.DraftsFile{Home: home, Now: func() time.Time { return fixedTime }}
	w := newWorld(t, func(o *Options) { o.Drafts = file })
	golden(t, "drafts-none", w.get("/api/drafts").body)
	golden(t, "draft-set", w.post("/api/drafts", `{"key":"chat.claude-app","value":"half a thought"}`).body)
	w.post("/api/drafts", `{"key":"review.1","value":{"lines":["a"]}}`)
	golden(t, "drafts", w.get("/api/drafts").body)
	w.post("/api/drafts", `{"key":"chat.claude-app","value":""}`)
	if got := decode[dto.Drafts](t, w.get("/api/drafts")); len(got.Drafts) != 1 || got.Drafts[0].Key != "review.1" {
		t.Errorf("after it was sent there are %+v", got)
	}
	refused(t, "no key", w.post("/api/drafts", `{"key":"","value":"x"}`), http.StatusBadRequest)
	refused(t, "a long one", w.post("/api/drafts", `{"key":"k","value":"`+strings.Repeat("x", config.MaxDraftBytes)+`"}`), http.StatusRequestEntityTooLarge)
	refused(t, "another member", w.post("/api/drafts", `{"key":"k","value":"x","at":1}`), http.StatusBadRequest)
	refused(t, "nowhere to keep it", newWorld(t).post("/api/drafts", `{"key":"k","value":"x"}`), http.StatusServiceUnavailable)
}
