package prove

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/platform/pageclient"
)

// page is the owner's page without a browser.
type page struct{ *pageclient.Client }

// shown is what the page shows, as far as the routes need it.
type shown struct {
	Peers []struct {
		Name      string `json:"name"`
		Transport string `json:"transport"`
		Detail    string `json:"detail"`
		Children  []struct {
			ID string `json:"id"`
		} `json:"children"`
	} `json:"peers"`
	Messages  []shownMessage `json:"messages"`
	Approvals []approval     `json:"approvals"`
}

// shownMessage is a message on the page.
type shownMessage struct {
	ID   string `json:"id"`
	Body string `json:"body"`
}

// words is what the owner writes on the page.
type words struct {
	Body  string `json:"body"`
	Child string `json:"child,omitempty"` // the id of a sub-agent, "" for the session
}

// written is the page's answer to the owner's words.
type written struct {
	State     string `json:"state"`
	Transport string `json:"transport"`
	Detail    string `json:"detail"`
}

// openPage signs in with a launch link, and returns the page. It fails with Invalid if the
// link is none.
func openPage(ctx context.Context, link string) (*page, error) {
	client, err := pageclient.Open(ctx, link)
	return &page{client}, err
}

// await returns what the page shows once that fits. It looks again at each event, as the
// page does. With an error it returns what the page showed last.
func (p *page) await(ctx context.Context, fits func(shown) bool) (now shown, err error) {
	err = p.Await(ctx, func() (bool, error) {
		var next shown
		if err := p.Get(ctx, "/api/state", &next); err != nil {
			return false, err
		}
		now = next
		return fits(now), nil
	})
	return now, err
}

// write posts the owner's words to the session, as the page does.
func (w *walk) write(ctx context.Context, said words) (written, error) {
	var answer written
	err := w.page.Ask(ctx, http.MethodPost, "/api/sessions/"+url.PathEscape(w.peer.Name)+"/message", said, &answer)
	return answer, err
}

// yourWords writes as the owner to the idle session, and to the session at work.
func (w *walk) yourWords(ctx context.Context) *fault {
	if wrong := w.wordsWhileIdle(ctx); wrong != nil {
		return wrong
	}
	return w.wordsAtWork(ctx)
}

// wordsWhileIdle writes as the owner to the idle session, which starts a turn.
func (w *walk) wordsWhileIdle(ctx context.Context) *fault {
	const step, text = "your words to the idle session", "Your user writes this to the idle session."
	w.settle(ctx)
	if wrong := w.hasMod(ctx); wrong != nil {
		return wrong
	}
	ctx, cancel := w.within(ctx)
	defer cancel()
	written, err := w.write(ctx, words{Body: text})
	if err != nil {
		return &fault{step, "Bridge takes them", err.Error()}
	}
	return w.arrives(ctx, step, text, written)
}

// hasMod waits until Bridge's mod runs in the session, if this agent has one.
func (w *walk) hasMod(ctx context.Context) *fault {
	if !w.mod || w.label == nil {
		return nil
	}
	ctx, cancel := w.within(ctx)
	defer cancel()
	detail := "Bridge lists no such session"
	_, err := w.page.await(ctx, func(s shown) bool {
		for _, peer := range s.Peers {
			if peer.Name == w.peer.Name {
				detail = peer.Detail
				return peer.Transport == string(delivery.ByMod)
			}
		}
		return false
	})
	if err != nil {
		return &fault{"start of Bridge's mod in the session", "it runs, and enters your words as prompts", "it does not run within " + w.StepTimeout.String() + "\nthe session: " + detail}
	}
	return nil
}

// wordsAtWork writes as the owner while a turn runs, which continues to its end.
func (w *walk) wordsAtWork(ctx context.Context) *fault {
	const step, text = "your words to the session at work", "Your user writes this to the session at work."
	ctx, cancel := w.within(ctx)
	defer cancel()
	work, end := sync.OnceFunc(func() { w.model.Open("words-work") }), sync.OnceFunc(func() { w.model.Open("words-end") })
	defer end()
	defer work()
	if _, err := w.play(ctx, "words", w.run("true").After("words-work"), scripted.Say("worked").After("words-end")); err != nil {
		return w.unasked(step, err)
	}
	if err := w.model.AtGate(ctx, "words-work"); err != nil {
		return w.unasked(step, err)
	}
	written, err := w.write(ctx, words{Body: text})
	if err != nil {
		return &fault{step, "Bridge takes them", err.Error()}
	}
	work()
	if err := w.model.AtGate(ctx, "words-end"); err != nil {
		return &fault{step, "the turn continues", "no request after the tool call\nits screen ends with:\n" + lastLines(w.session.Screen())}
	}
	end()
	return w.arrives(ctx, step, text, written)
}

// arrives waits until the model reads the owner's words, and returns a fault unless it
// reads them once, in the form that this agent offers.
func (w *walk) arrives(ctx context.Context, step, text string, said written) *fault {
	request, err := w.model.Wait(ctx, "the owner's words", func(r scripted.Request) bool { return !r.Aux && !r.Child() && r.Count(text) > 0 })
	if err != nil {
		return &fault{step, "the model is asked with your words", "no request within " + w.StepTimeout.String() + "\nBridge said: " + said.Detail}
	}
	w.settle(ctx)
	if n := w.newest(request).Count(text); n != 1 {
		return &fault{step, "the model reads your words once", fmt.Sprintf("it reads them %s\nBridge said: %s", bridge.Counted(n, "time"), said.Detail)}
	}
	if w.label != nil && !isPrompt(request, *w.label+text) {
		return &fault{step, "the model reads your words as a prompt of its user", "it reads them, but not as such a prompt\nBridge said: " + said.Detail}
	}
	return nil
}

// newest returns the session's newest request, which is the given one or a later one.
func (w *walk) newest(request scripted.Request) scripted.Request {
	for _, r := range w.model.Requests() {
		if r.Number > request.Number && r.Thread == request.Thread && !r.Aux {
			request = r
		}
	}
	return request
}

// isPrompt reports whether a message of the user is exactly the text.
func isPrompt(request scripted.Request, text string) bool {
	return slices.Contains(request.Items, scripted.Item{Role: "user", Text: text})
}

// toChild writes as the owner to a sub-agent of the session that is at work.
func (w *walk) toChild(ctx context.Context) *fault {
	const step, text = "your words to a sub-agent at work", "Your user writes this to the sub-agent."
	ctx, cancel := w.within(ctx)
	defer cancel()
	child, parent := sync.OnceFunc(func() { w.model.Open("child-work") }), sync.OnceFunc(func() { w.model.Open("parent-work") })
	defer parent()
	defer child()
	w.model.Script("child", w.run("true").After("child-work"), scripted.Say("child-done"))
	if _, err := w.play(ctx, "parent", w.child, w.run("true").After("parent-work"), scripted.Say("parent-done")); err != nil {
		return w.unasked(step, err)
	}
	asked, err := w.model.Wait(ctx, "a request of the sub-agent", func(r scripted.Request) bool { return r.Script == "child" && r.Child() && !r.Aux })
	if err != nil {
		return &fault{step, "the session starts a sub-agent", lastLines(err.Error())}
	}
	if _, err := w.page.await(ctx, func(s shown) bool { return s.hasChild(w.peer.Name, asked.Thread) }); err != nil {
		return &fault{step, "Bridge lists the sub-agent " + asked.Thread, lastLines(err.Error())}
	}
	written, err := w.write(ctx, words{Body: text, Child: asked.Thread})
	if err != nil {
		return &fault{step, "Bridge takes them", err.Error()}
	}
	if written.State != "queued" {
		return &fault{step, "Bridge takes them", written.State + ": " + written.Detail}
	}
	child()
	request, err := w.model.Wait(ctx, "the words at the sub-agent", func(r scripted.Request) bool { return !r.Aux && r.Count(text) > 0 })
	if err != nil {
		return &fault{step, "the sub-agent's model is asked with them", "no request within " + w.StepTimeout.String() + "\nBridge said: " + written.Detail}
	}
	parent()
	w.settle(ctx)
	if n := w.newest(request).Count(text); request.Thread != asked.Thread || n != 1 {
		return &fault{step, "the sub-agent " + asked.Thread + " reads them once", fmt.Sprintf("%s reads them %s", request.Thread, bridge.Counted(n, "time"))}
	}
	return nil
}

// hasChild reports whether the page lists a sub-agent of a session.
func (s shown) hasChild(session, id string) bool {
	for _, peer := range s.Peers {
		for _, child := range peer.Children {
			if peer.Name == session && child.ID == id {
				return true
			}
		}
	}
	return false
}
