package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"bridge/backend/core/prompt"
	"bridge/backend/platform/config"
)

// prompts measures a permission prompt of a session: from the start of claude's hook
// until an open page has its card, and from the owner's click until the hook has printed
// the answer and ended.
func (l *lab) prompts(ctx context.Context) (err error) {
	programs, err := l.hookPrograms(ctx)
	if err != nil {
		return err
	}
	b, err := l.start(ctx, "prompts")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	if _, err := b.idleHost(ctx); err != nil {
		return err
	}
	if _, err := b.home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts = prompt.Always; return nil }); err != nil {
		return err
	}
	watching, err := b.watch(ctx)
	if err != nil {
		return err
	}
	defer watching.events.Close()
	post, err := b.poster(ctx)
	if err != nil {
		return err
	}
	rounds := 100
	if l.quick {
		rounds = 30
	}
	var presented, applied times
	for round := range rounds {
		command := fmt.Sprintf("make part-%d", round)
		cmd := exec.CommandContext(ctx, programs.hook, "claude", "PermissionRequest", "--home", b.home.Dir())
		cmd.Env = append(os.Environ(), "CLAUDE_CODE_ENTRYPOINT=cli")
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"`+hostSession+`","cwd":%q,"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":%q}}`, l.dir, command))
		var builder strings.Builder
		cmd.Stdout = &builder
		before := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		id, err := watching.card(ctx, command)
		if err != nil {
			return err
		}
		presented = append(presented, time.Since(before))
		before = time.Now()
		if err := post("/api/approvals/"+id, map[string]string{"decision": "allow"}); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(builder.String(), `"allow"`) {
			return fmt.Errorf("the hook said %q: %w", builder.String(), err)
		}
		applied = append(applied, time.Since(before))
	}
	l.soon("prompt: hook's start until an open page has its card", presented)
	l.soon("prompt: click until the hook has given the answer", applied)
	return nil
}

// soon is what a person does not wait for.
func (l *lab) soon(what string, elapsed times) {
	p95 := elapsed.at(0.95)
	l.add(row{what: what, measured: fmt.Sprintf("%s p50, %s p95", elapsed.at(0.5), p95), value: p95.Seconds() * 1000, goal: "p95 < 300 ms", bound: 300})
}

// watching is an open page: it hears that something changed and fetches what it shows.
type watching struct {
	client *http.Client
	base   string
	events io.ReadCloser
	lines  *bufio.Scanner
}

func (b *running) watch(ctx context.Context) (*watching, error) {
	client, base, err := b.page(ctx)
	if err != nil {
		return nil, err
	}
	w := &watching{client: &http.Client{Jar: client.Jar}, base: base} // its events go on
	if w.events, err = w.get(ctx, "/api/events"); err != nil {
		return nil, err
	}
	w.lines = bufio.NewScanner(w.events)
	return w, nil
}

func (w *watching) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answered %s", path, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// card waits until the page shows the open prompt for that command.
func (w *watching) card(ctx context.Context, command string) (id string, err error) {
	for {
		var state struct {
			Approvals []struct{ ID, Detail, State string }
		}
		body, err := w.get(ctx, "/api/state")
		if err != nil {
			return "", err
		}
		if err := errors.Join(json.NewDecoder(body).Decode(&state), body.Close()); err != nil {
			return "", err
		}
		for _, approval := range state.Approvals {
			if approval.Detail == command && approval.State == "asked" {
				return approval.ID, nil
			}
		}
		if err := w.next(); err != nil {
			return "", err
		}
	}
}

// next waits for the next change.
func (w *watching) next() error {
	for w.lines.Scan() {
		if strings.HasPrefix(w.lines.Text(), "data:") {
			return nil
		}
	}
	return fmt.Errorf("the page's events have ended: %w", w.lines.Err())
}
