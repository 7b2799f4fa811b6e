package prove

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/agent/prove/scripted"
)

// approval is a permission prompt as the page shows it.
type approval struct {
	ID       string `json:"id"`
	Job      string `json:"job"` // "" for a prompt of a session
	Detail   string `json:"detail"`
	State    string `json:"state"`
	OnlyTold string `json:"onlyTold"` // why it cannot be answered on the page
}

// prompt returns the newest prompt whose detail holds the text. ok is false without one.
func (s shown) prompt(text string) (found approval, ok bool) {
	for _, approval := range s.Approvals {
		if strings.Contains(approval.Detail, text) {
			found, ok = approval, true
		}
	}
	return found, ok
}

// allow waits until the page shows a prompt with the text in its detail that can be
// answered, and allows it as the page does.
func (w *walk) allow(ctx context.Context, step, text string) *fault {
	now, err := w.page.await(ctx, func(s shown) bool {
		approval, ok := s.prompt(text)
		return ok && approval.State == "asked" && approval.OnlyTold == ""
	})
	asked, ok := now.prompt(text)
	switch {
	case err != nil && !ok:
		return &fault{step, "the page shows the prompt", "no such prompt" + w.waited(ctx)}
	case err != nil:
		return &fault{step, "the prompt can be answered on the page", "the prompt is " + asked.State + "\n" + asked.OnlyTold}
	}
	var after approval
	if err := w.page.Ask(ctx, http.MethodPost, "/api/approvals/"+asked.ID, map[string]string{"decision": "allow"}, &after); err != nil {
		return &fault{step, "the page's answer is taken", err.Error()}
	}
	return nil
}

// permission has the session ask for a permission, and allows it on the page.
func (w *walk) permission(ctx context.Context) *fault {
	const step, file = "tool call that asks for a permission", "allowed-on-the-page"
	w.settle(ctx)
	ctx, cancel := w.within(ctx)
	defer cancel()
	if _, err := w.play(ctx, "permission", w.asks("touch "+file), scripted.Say("permitted")); err != nil {
		return w.unasked(step, err)
	}
	if wrong := w.allow(ctx, step, "touch "+file); wrong != nil {
		wrong.got += "\nits screen ends with:\n" + lastLines(w.session.Screen())
		return wrong
	}
	if _, err := w.request(ctx, "permission", 1); err != nil {
		return &fault{step, "the tool runs once the page allows it", "it does not run\nits screen ends with:\n" + lastLines(w.session.Screen())}
	}
	if _, err := os.Stat(filepath.Join(w.home.Project(project), file)); err != nil {
		return &fault{step, "the tool runs once the page allows it", err.Error()}
	}
	w.settle(ctx)
	return nil
}
