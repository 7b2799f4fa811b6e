// Package models queries the agent CLIs of this PC for their models and for the
// used part of their account's limits (JOB-21). It reports what a CLI does not
// provide, and never guesses.
//
// Each query starts the CLI in a process that ends with its answer or its timeout.
// Answers are cached, with one query at a time for each CLI. A waiting caller
// blocks no other. Package kinds has the table of the queries.
package models

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

const (
	keepModels = 10 * time.Minute
	keepUsage  = 5 * time.Minute
	keepError  = time.Minute
	// askTime is the timeout of one query: an opencode on a busy PC was seen to need 30 s.
	askTime = 45 * time.Second
	// checkTime is how long a job waits for a missing list. After that the CLI
	// itself must report an unknown model.
	checkTime = 10 * time.Second
	// mostModels bounds an answer, because a model reads it.
	mostModels = 300
)

// notTold is the note for a CLI without such a command.
const notTold = "not told by this CLI"

// Book caches the CLIs' answers and their times.
type Book struct {
	// Settings returns the current settings.
	Settings func() (config.Settings, error)
	// Where controls the search for programs; those of the settings come first.
	Where agent.Lookup
	Now   func() time.Time
	// QueriesOf returns the queries of a kind, the zero value for one without any.
	QueriesOf func(kind bridge.AgentKind) Queries

	models cache[list]
	usage  cache[account]
}

// list holds a CLI's models; whole means that it accepts no others.
type list struct {
	models []api.Model
	whole  bool
	note   string
}

// account holds the used part of an account's limits.
type account struct {
	plan   string
	limits []api.Limit
	note   string
}

// Queries are the queries of one kind; nil if it has no such command. Each kind has a value.
type Queries struct {
	Models func(ctx context.Context, program string, env []string) (list, error)
	Usage  func(ctx context.Context, program string, env []string) (account, error)
}

// Check refuses a job that no agent of this PC can do. It fails with NotFound if
// the agent is not here, or if its complete list lacks the model.
func (b *Book) Check(ctx context.Context, request job.Request) error {
	settings, err := b.Settings()
	if err != nil {
		return err
	}
	spec, err := agent.Fit(job.Spec{Kind: request.Kind, ACP: job.ACPAgent{Name: request.ACPAgent}}, settings, b.Where)
	if err != nil || request.Model == "" || b.QueriesOf(request.Kind).Models == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	answer, err := b.listOf(ctx, request.Kind, spec.Command[0])
	knows := func(m api.Model) bool { return m.ID == request.Model }
	if err != nil || !answer.value.whole || slices.ContainsFunc(answer.value.models, knows) {
		return nil // an unavailable list refuses no model
	}
	return bridge.Errorf(bridge.NotFound, "%s has no model %q: %s", request.Kind, request.Model, offers(answer.value.models))
}

// offers returns a few models as text.
func offers(models []api.Model) string {
	if len(models) == 0 {
		return "it offers none"
	}
	const few = 8
	var names []string
	for _, m := range models[:min(few, len(models))] {
		names = append(names, m.ID)
	}
	text := "it offers " + strings.Join(names, ", ")
	if len(models) > few {
		text += " and others, which list_models names"
	}
	return text
}

func (b *Book) listOf(ctx context.Context, kind bridge.AgentKind, program string) (answer[list], error) {
	ask := func(ctx context.Context) (list, error) {
		return b.QueriesOf(kind).Models(ctx, program, b.environment())
	}
	return b.models.get(ctx, string(kind)+"\x00"+program, keepModels, b.Now, ask)
}

// Models returns the models of one kind, or with "" of all kinds on this PC. It
// fails with NotFound for a missing kind.
func (b *Book) Models(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error) {
	agents, err := gather(ctx, b, kind, func(kind bridge.AgentKind, program string) api.AgentModels {
		models := api.AgentModels{Agent: kind, AsOf: b.Now().UnixMilli(), Models: []api.Model{}, Note: notTold}
		if b.QueriesOf(kind).Models == nil {
			return models
		}
		answer, err := b.listOf(ctx, kind, program)
		models.AsOf, models.Note = answer.asOf.UnixMilli(), answer.value.note
		models.Models = append(models.Models, answer.value.models[:min(mostModels, len(answer.value.models))]...)
		if err != nil {
			models.Note = "it did not tell: " + err.Error()
		}
		return models
	})
	return api.ModelsResult{Agents: agents}, err
}

// Usage returns the used part of the account limits of one kind, or with "" of all
// kinds on this PC. It fails with NotFound for a missing kind.
func (b *Book) Usage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error) {
	agents, err := gather(ctx, b, kind, func(kind bridge.AgentKind, program string) api.AgentUsage {
		usage := api.AgentUsage{Agent: kind, AsOf: b.Now().UnixMilli(), Limits: []api.Limit{}, Note: notTold}
		ask := b.QueriesOf(kind).Usage
		if ask == nil {
			return usage
		}
		answer, err := b.usage.get(ctx, string(kind)+"\x00"+program, keepUsage, b.Now, func(ctx context.Context) (account, error) {
			return ask(ctx, program, b.environment())
		})
		usage.AsOf, usage.Plan, usage.Note = answer.asOf.UnixMilli(), answer.value.plan, answer.value.note
		usage.Limits = append(usage.Limits, answer.value.limits...)
		if err != nil {
			usage.Note = "it did not tell: " + err.Error()
		}
		return usage
	})
	return api.UsageResult{Agents: agents}, err
}

// CachedUsage returns the CLIs' last answers, of any age, without a query: a mere
// view must start no program.
func (b *Book) CachedUsage() []api.AgentUsage {
	told := map[bridge.AgentKind]api.AgentUsage{}
	b.usage.each(func(key string, found answer[account]) {
		name, _, _ := strings.Cut(key, "\x00")
		kind := bridge.AgentKind(name)
		if asOf := found.asOf.UnixMilli(); found.err == nil && asOf >= told[kind].AsOf {
			told[kind] = api.AgentUsage{Agent: kind, AsOf: asOf, Plan: found.value.plan, Note: found.value.note, Limits: append([]api.Limit{}, found.value.limits...)}
		}
	})
	kept := []api.AgentUsage{}
	for _, kind := range bridge.Kinds() {
		if usage, ok := told[kind]; ok {
			kept = append(kept, usage)
		}
	}
	return kept
}

// gather queries the agents of this PC concurrently. It fails with NotFound if the
// requested one is not here.
func gather[R any](ctx context.Context, b *Book, kind bridge.AgentKind, ask func(bridge.AgentKind, string) R) ([]R, error) {
	settings, err := b.Settings()
	if err != nil {
		return nil, err
	}
	kinds, programs := []bridge.AgentKind{}, []string{}
	for _, agentKind := range bridge.Kinds() {
		if kind != "" && kind != agentKind {
			continue
		}
		where := b.Where
		where.Configured = settings.Bin(agentKind)
		program, err := agent.Locate(agentKind, where)
		switch {
		case err == nil:
			kinds, programs = append(kinds, agentKind), append(programs, program)
		case kind != "":
			return nil, err
		}
	}
	told := make([]R, len(kinds))
	var all sync.WaitGroup
	for i := range kinds {
		all.Go(func() { told[i] = ask(kinds[i], programs[i]) })
	}
	all.Wait()
	return told, ctx.Err()
}

// answer is a CLI's answer and its time.
type answer[T any] struct {
	value T
	err   error
	asOf  time.Time
}

// cache caches answers by their source.
type cache[T any] struct {
	mu      sync.Mutex // guards the fields below
	answers map[string]answer[T]
	asking  map[string]chan struct{} // closed when the answer has arrived
}

// get returns an answer that is recent enough, or waits within ctx for a new one. The
// query continues if the caller gives up, so that the next caller gets its answer.
func (k *cache[T]) get(ctx context.Context, key string, keep time.Duration, now func() time.Time, ask func(context.Context) (T, error)) (answer[T], error) {
	for {
		k.mu.Lock()
		found, has := k.answers[key]
		if found.err != nil {
			keep = keepError
		}
		if has && now().Sub(found.asOf) < keep {
			k.mu.Unlock()
			return found, found.err
		}
		asking := k.asking[key]
		if asking == nil {
			asking = k.beginLocked(context.WithoutCancel(ctx), key, now, ask)
		}
		k.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return answer[T]{asOf: now()}, ctx.Err()
		}
	}
}

// each calls with for every cached answer.
func (k *cache[T]) each(with func(key string, found answer[T])) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, found := range k.answers {
		with(key, found)
	}
}

func (k *cache[T]) beginLocked(ctx context.Context, key string, now func() time.Time, ask func(context.Context) (T, error)) chan struct{} {
	if k.answers == nil {
		k.answers, k.asking = map[string]answer[T]{}, map[string]chan struct{}{}
	}
	done := make(chan struct{})
	k.asking[key] = done
	go func() {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		value, err := ask(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.answers[key] = answer[T]{value, err, now()}
		delete(k.asking, key)
		close(done)
	}()
	return done
}
