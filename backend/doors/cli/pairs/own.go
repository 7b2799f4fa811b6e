package pairs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// ExternalFlags are the flags of `bridge join` for a team's own NATS server (HUB-01).
type ExternalFlags struct {
	identity, plain         bool
	urls                    []string
	creds, ca, team, roster string
	flags                   *pflag.FlagSet
}

// BindExternal adds the flags to a command's.
func BindExternal(flags *pflag.FlagSet) *ExternalFlags {
	o := &ExternalFlags{flags: flags}
	flags.BoolVar(&o.identity, "identity", false, "join nothing: print this PC's name and identity, for who gives out credentials")
	flags.StringSliceVar(&o.urls, "nats", nil, "tls://host:port of a NATS server of the team's own, in place of a hub")
	flags.StringVar(&o.creds, "creds", "", "file with this PC's credentials for it; they are copied into the home")
	flags.StringVar(&o.team, "team", "team", "the team's name there")
	flags.StringVar(&o.roster, "roster", "", "fingerprint of the team's key, which its owner tells you")
	flags.StringVar(&o.ca, "ca", "", "file with the certificates that sign the server's (default the system's)")
	flags.BoolVar(&o.plain, "plain", false, "let nats://, which is not encrypted, go beyond this machine")
	return o
}

// IsSet reports whether the command concerns such a server, or this PC's identity.
func (o *ExternalFlags) IsSet() bool {
	for _, name := range []string{"identity", "nats", "creds", "team", "roster", "ca", "plain"} {
		if o.flags.Changed(name) {
			return true
		}
	}
	return false
}

// Read returns the command's function for the flags, and reads the named files.
func (o *ExternalFlags) Read(home config.Home) (do func(context.Context, *ipc.Client) (answer any, text string, err error), err error) {
	if o.identity {
		return func(ctx context.Context, client *ipc.Client) (any, string, error) {
			pc, err := client.Identify(ctx)
			return pc, fmt.Sprintf("This PC is %s, %s\nIts key, by which others in a team can seal what is for it: %s\n", pc.Name, pc.ID, pc.Key), err
		}, nil
	}
	for _, row := range []struct{ flag, value string }{{"nats", fmt.Sprint(len(o.urls))}, {"creds", o.creds}, {"roster", o.roster}} {
		if row.value == "" || row.value == "0" {
			return nil, bridge.Errorf(bridge.Invalid, "a NATS server of the team's own is joined with --nats, --creds and --roster: --%s is missing", row.flag)
		}
	}
	args := api.JoinExternalArgs{Team: o.team, Roster: o.roster, URLs: o.urls, Plain: o.plain}
	if args.Creds, err = readFile("credentials file", o.creds); err != nil {
		return nil, err
	}
	if o.ca != "" {
		if args.CA, err = readFile("certificates file", o.ca); err != nil {
			return nil, err
		}
	}
	if err := externalnats.CheckRoster(args.Roster); err != nil {
		return nil, err
	}
	if err := (externalnats.Access{Creds: args.Creds, CA: args.CA, Plain: args.Plain}).Check(args.URLs); err != nil {
		return nil, err
	}
	return func(ctx context.Context, client *ipc.Client) (any, string, error) {
		joined, err := client.JoinExternal(ctx, args)
		if bridge.CodeOf(err) == bridge.Unavailable { // it concerns the server, not this broker
			err = bridge.Errorf(bridge.Conflict, "%s", err.Error())
		}
		return joined, Joined(joined, home), err
	}, nil
}

func readFile(what, path string) (string, error) {
	data, err := disk.ReadLimited(path, externalnats.MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bridge.Errorf(bridge.Invalid, "the %s %s is not there", what, path)
	case errors.Is(err, os.ErrPermission):
		return "", bridge.Errorf(bridge.Invalid, "the %s %s may not be read", what, path)
	case err != nil:
		return "", bridge.WithCause(bridge.Invalid, err, fmt.Sprintf("the %s %s cannot be read: %s", what, path, disk.Reason(err)))
	}
	return string(data), nil
}

// Left returns the message that this PC has left its team.
func Left(former api.Joined) string {
	text := "This PC belongs to the team " + former.Team + " no more.\n"
	lists := "The hub still lists it until `bridge-hub remove` is run there"
	if former.Own {
		lists = "The team's list still has it until its owner runs `bridge-hub roster remove`"
	}
	switch {
	case former.Untold != "":
		text += lists + ": " + former.Untold + ".\n"
	case former.Own:
		text += "Its PCs were told. " + lists + ".\n"
	default:
		text += "The hub has taken it out of the team, too.\n"
	}
	if former.Own {
		text += "Its credentials for the NATS server are removed from here; whoever administers that takes them back there.\n"
	}
	return text
}
