package jobs

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// errNoAgents is the error of a broker that has no Agents.
var errNoAgents = bridge.Errorf(bridge.Unsupported, "this Bridge asks no agents for their models and limits")

// models returns the models that the CLIs report (JOB-21). A slow CLI delays only its
// own caller.
func (j *supervision) models(ctx context.Context, conn *ipc.Conn, args api.AgentArgs) (api.ModelsResult, error) {
	if err := mayAsk(ctx, j.opts.Broker, conn, args); err != nil {
		return api.ModelsResult{}, err
	}
	return j.AgentModels(ctx, args.Agent)
}

// usage returns the account limits that the CLIs report.
func (j *supervision) usage(ctx context.Context, conn *ipc.Conn, args api.AgentArgs) (api.UsageResult, error) {
	if err := mayAsk(ctx, j.opts.Broker, conn, args); err != nil {
		return api.UsageResult{}, err
	}
	return j.AgentUsage(ctx, args.Agent)
}

// AgentModels returns the models that the CLIs of one kind report, or of all for "". It fails
// with Unsupported without Agents, and with NotFound if the CLI of that kind is not installed.
func (j *supervision) AgentModels(ctx context.Context, kind bridge.AgentKind) (api.ModelsResult, error) {
	if j.opts.Agents == nil {
		return api.ModelsResult{}, errNoAgents
	}
	return j.opts.Agents.Models(ctx, kind)
}

// AgentUsage returns the account limits that the CLIs report. It fails as AgentModels does.
func (j *supervision) AgentUsage(ctx context.Context, kind bridge.AgentKind) (api.UsageResult, error) {
	if j.opts.Agents == nil {
		return api.UsageResult{}, errNoAgents
	}
	return j.opts.Agents.Usage(ctx, kind)
}

// CachedUsage returns the last known account limits without a request to any CLI.
func (j *supervision) CachedUsage() []api.AgentUsage {
	if j.opts.Agents == nil {
		return nil
	}
	return j.opts.Agents.CachedUsage()
}

// mayAsk refuses a connection without a session.
func mayAsk(ctx context.Context, broker Broker, conn *ipc.Conn, args api.AgentArgs) error {
	_, err := broker.Asker(ctx, conn, args.Caller)
	return err
}
