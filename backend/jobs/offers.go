package jobs

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// errNoAgents is of a broker that does not know the agents of this PC.
var errNoAgents = bridge.Errorf(bridge.Unsupported, "this Bridge asks no agents for their models and limits")

// models tells what the CLIs tell of their models (JOB-21). Whoever waits for that
// waits alone.
func (j *asks) models(ctx context.Context, conn *ipc.Conn, args api.AgentArgs) (api.ModelsResult, error) {
	if err := mayAsk(ctx, j.opts.Broker, conn, args); err != nil {
		return api.ModelsResult{}, err
	}
	return j.AgentModels(ctx, args.Agent)
}

// usage tells what the CLIs tell of the limits of their accounts.
func (j *asks) usage(ctx context.Context, conn *ipc.Conn, args api.AgentArgs) (api.UsageResult, error) {
	if err := mayAsk(ctx, j.opts.Broker, conn, args); err != nil {
		return api.UsageResult{}, err
	}
	return j.AgentUsage(ctx, args.Agent)
}

// AgentModels tells what the CLIs tell of their models, of one kind or, for "", of all.
func (j *asks) AgentModels(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error) {
	if j.opts.Agents == nil {
		return api.ModelsResult{}, errNoAgents
	}
	return j.opts.Agents.Models(ctx, kind)
}

// AgentUsage tells what the CLIs tell of their accounts' limits.
func (j *asks) AgentUsage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error) {
	if j.opts.Agents == nil {
		return api.UsageResult{}, errNoAgents
	}
	return j.opts.Agents.Usage(ctx, kind)
}

// KeptUsage is what the CLIs told of their limits last, without asking any.
func (j *asks) KeptUsage() []api.AgentUsage {
	if j.opts.Agents == nil {
		return nil
	}
	return j.opts.Agents.KeptUsage()
}

// mayAsk refuses a connection that no session stands behind.
func mayAsk(ctx context.Context, broker Broker, conn *ipc.Conn, args api.AgentArgs) error {
	_, err := broker.Asker(ctx, conn, args.Caller)
	return err
}
