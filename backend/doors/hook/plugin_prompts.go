package hook

import (
	"context"
	"os"
	"sync"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// heldPrompt is an opencode prompt forwarded to its owner, on a separate
// connection. It does not affect the terminal's own prompt.
type heldPrompt struct {
	events chan api.PromptEvent // the plugin's events of the prompt, in order
}

// maxEvents is more than the number of events of one prompt.
const maxEvents = 8

// prompted handles a new prompt, or an event of one.
func (p *Plugin) prompted(ctx context.Context, running *sync.WaitGroup, request hooks.PluginRequest) {
	if pluginSettled := request.Settled; pluginSettled != nil {
		p.mu.Lock()
		held := p.prompts[pluginSettled.ID]
		p.mu.Unlock()
		if held != nil {
			select {
			case held.events <- api.PromptEvent(pluginSettled.Event):
			default: // the plugin repeats it
			}
		}
		return
	}
	prompt, err := hooks.ParsePluginPrompt(p.kind, *request.Prompt)
	if err != nil {
		p.opts.Log.Warn("a prompt is not understood", "err", err)
		return
	}
	id, held := string(request.Prompt.ID), &heldPrompt{events: make(chan api.PromptEvent, maxEvents)}
	p.mu.Lock()
	_, known := p.prompts[id]
	if !known {
		p.prompts[id] = held
	}
	p.mu.Unlock()
	if known {
		return
	}
	running.Go(func() {
		p.holdPrompt(ctx, id, held, prompt)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.prompts, id)
	})
}

// holdPrompt asks the owner while the prompt is open. If a broker ends, it asks the
// next one, because no decision was made.
func (p *Plugin) holdPrompt(ctx context.Context, id string, held *heldPrompt, prompt hooks.Prompt) {
	for ctx.Err() == nil {
		known, err := p.reconnector.Client(ctx)
		if err == nil {
			err = p.ensure(ctx, known, prompt.Call)
		}
		if err == nil {
			err = p.askOwner(ctx, id, held, prompt)
		}
		if err == nil || bridge.CodeOf(err) != bridge.Unavailable || !ipc.Pause(ctx, wakeRetry/8) {
			return
		}
		if over(held) {
			return
		}
	}
}

// over reports whether the plugin has reported the end of the prompt.
func over(held *heldPrompt) bool {
	select {
	case <-held.events:
		return true
	default:
		return false
	}
}

// askOwner asks through one broker. It fails with Unavailable if the broker ends before the answer.
func (p *Plugin) askOwner(ctx context.Context, id string, held *heldPrompt, prompt hooks.Prompt) error {
	client, err := ipc.Dial(ctx, p.reconnector.Target, ipc.Hello{Role: api.RolePlugin, PID: os.Getpid(), Version: p.opts.Version})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	args := promptArgs(uuid.NewString(), prompt, 0)
	answers, failed := make(chan api.PromptAnswer, 1), make(chan error, 1)
	go func() {
		answer, err := client.Prompt(ctx, args)
		if err != nil {
			failed <- err
			return
		}
		answers <- answer
	}()
	for {
		select {
		case answer := <-answers:
			if answer.Decision == "" {
				return nil
			}
			pushed := &hooks.PluginAnswer{ID: id, Allow: answer.Decision == job.Allow, Answers: answer.Answers}
			if !pushed.Allow {
				pushed.Message = hooks.Denial(answer.Reason)
			}
			p.write(hooks.PluginPush{Answer: pushed})
		case err := <-failed:
			return err
		case event := <-held.events:
			report(client, api.PromptReport{ID: args.ID, Event: event})
			if event != api.PromptDelivered {
				return nil
			}
		case <-client.Done():
			return bridge.Errorf(bridge.Unavailable, "the broker has gone")
		case <-ctx.Done():
			return nil
		}
	}
}
