package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/pairs"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// sendFileName is the command that takes names of files.
const sendFileName = "send-file"

// sendFileCommand sends files and folders to a paired PC (RMT-20).
func sendFileCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: sendFileName + " HOST PATH...", ValidArgsFunction: completing(a, pcNames), Short: "Send files and folders to a paired PC", Args: usage.AtLeast(2),
		Long: "Sends files, and folders with all files below them, to a paired PC whose owner allows it. They arrive in a folder\nof its inbox, all at once and checked, and are not opened there. Links are refused, and names that not every system\n" +
			"has. What is cut goes on by itself when the link is back, also after this command has ended: `bridge files` shows\nhow far it is, `bridge files --cancel ID` ends it.",
		Example: "  bridge send-file desk report.pdf\n  bridge send-file desk notes/ build.log",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.sendFiles(cmd.Context(), args[0], args[1:]) },
	})
}

func (a *App) sendFiles(ctx context.Context, host string, paths []string) error {
	if err := a.onlyOwner(sendFileName); err != nil {
		return err
	}
	args := api.SendFilesArgs{Host: host}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		args.Paths = append(args.Paths, absolute)
	}
	client, _, err := a.dialOwner(ctx, startsToWrite)
	if err != nil {
		return err
	}
	defer client.Close()
	transfer, err := client.SendFiles(ctx, args)
	if bridge.CodeOf(err) == bridge.Unavailable { // it concerns the other PC, not this broker
		return bridge.Errorf(bridge.Conflict, "%s", err.Error())
	}
	if err == nil {
		transfer, err = a.followTransfer(ctx, client, transfer)
	}
	if err != nil {
		return err
	}
	if transfer.State == api.TransferFailed {
		return bridge.Errorf(bridge.Code(transfer.Code), "%s", transfer.Error)
	}
	return a.print(transfer, fmt.Sprintf("Sent to %s: %s.\n", transfer.PC.Name, pairs.Content(transfer)))
}

// followTransfer shows the progress of a transfer until it has ended.
func (a *App) followTransfer(ctx context.Context, client *ipc.Client, transfer api.Transfer) (api.Transfer, error) {
	progress := terminal.NewProgress(a.Stderr, a.Now)
	defer progress.End()
	for !transfer.HasEnded() {
		var err error
		if transfer, err = client.Transfer(ctx, api.TransferArgs{ID: transfer.ID, Seen: transfer.Revision}); err != nil {
			return transfer, err
		}
		progress.Tell(pairs.TransferState(transfer), transfer.Done, transfer.Bytes)
	}
	return transfer, nil
}

// filesCommand lists the sent and received transfers.
func filesCommand(a *App) *cobra.Command {
	var cancel string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "files", Short: "Show files that arrived from paired PCs, and those on their way", Args: usage.None,
		Long:    "Shows the newest transfers: what arrived, from whom and where it lies, what was sent, and what is on its way. Files\nthat arrived are yours: Bridge opens none of them, and no snapshot holds them.",
		Example: "  bridge files\n  bridge files --cancel 5f0c6a3e-3d1b-4c49-9f0e-0d1a55c1f1aa",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cancel != "" {
				if err := a.onlyOwner("files --cancel"); err != nil {
					return err
				}
			}
			client, _, err := a.dialOwner(cmd.Context(), startsToRead)
			if err != nil {
				return err
			}
			defer client.Close()
			if cancel == "" {
				transfers, err := client.Transfers(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(transfers, pairs.Transfers(transfers, a.Now()))
			}
			transfer, err := client.CancelTransfer(cmd.Context(), cancel)
			if err != nil {
				return err
			}
			return a.print(transfer, "It was cancelled; nothing of it is shown.\n")
		},
	})
	cmd.Flags().StringVar(&cancel, "cancel", "", "end the transfer with that id, on both sides")
	return cmd
}
