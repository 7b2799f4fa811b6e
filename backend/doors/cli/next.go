package cli

import (
	"context"
	"errors"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/doors/cli/report"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/storage/maintain/check"
)

// showNext implements `bridge` alone: the current state and the next step. It
// starts no broker and creates no home.
func showNext(ctx context.Context, a *App) error {
	client, home, err := a.dialOwner(ctx, startsNone)
	standing := report.Standing{Home: home.Dir()}
	switch {
	case bridge.CodeOf(err) == bridge.Unavailable && !errors.Is(err, context.DeadlineExceeded):
		if _, err := check.HasStore(ctx, home); errors.Is(err, check.ErrLost) {
			return err
		}
	case err != nil:
		return err
	default:
		defer client.Close()
		if err := askStanding(ctx, a, client, home, &standing); err != nil {
			return err
		}
	}
	agents, err := a.agents(home).Standings()
	standing.Connected = err != nil || len(agents) > 0 // `bridge doctor` reports an unreadable installation
	return a.print(standing, report.Next(standing, lineOf(home)))
}

// askStanding queries the broker for the current state.
func askStanding(ctx context.Context, a *App, client *ipc.Client, home config.Home, standing *report.Standing) error {
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	standing.Running, standing.Sessions = true, len(status.Peers)
	facts, err := needsFacts(ctx, client)
	if err != nil || facts == nil {
		return err
	}
	_, err = quickCheck(ctx, a, home, facts)
	standing.Needs = needs.Pressing(needs.List(*facts, a.Now()))
	return err
}
