package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// SendFilesArgs requests that files and folders are sent to a paired PC (RMT-20).
type SendFilesArgs struct {
	Host  string   `json:"host"`
	Paths []string `json:"paths"` // absolute
}

// The states of a transfer.
const (
	TransferPreparing = "preparing" // its files are read for their checksums
	TransferWaiting   = "waiting"   // for the other PC
	TransferMoving    = "moving"
	TransferDone      = "done"
	TransferFailed    = "failed"
)

// Transfer is a transfer of files to or from another PC.
type Transfer struct {
	ID       string            `json:"id"`
	Incoming bool              `json:"incoming"`
	PC       PCName            `json:"pc"`
	State    string            `json:"state"`
	Names    []string          `json:"names"` // the first of the sent names
	Files    int               `json:"files"`
	Bytes    int64             `json:"bytes"`
	Done     int64             `json:"done"`            // bytes sent, or read while preparing
	Folder   string            `json:"folder"`          // destination of an arrived transfer; "" otherwise
	Error    string            `json:"error,omitempty"` // why it failed, or what it waits for
	Code     string            `json:"code,omitempty"`  // of the error
	Started  int64             `json:"startedAt"`       // milliseconds since 1970
	Ended    bridge.UnixMillis `json:"endedAt,omitempty"`
	Revision int64             `json:"revision"` // increases with every visible change
}

// HasEnded reports whether the transfer is done or has failed.
func (t Transfer) HasEnded() bool { return t.State == TransferDone || t.State == TransferFailed }

// TransferArgs names a transfer; Seen is the last revision that the caller knows.
type TransferArgs struct {
	ID   string `json:"id"`
	Seen int64  `json:"seen"` // a revision
}

// Transfers lists the transfers of this PC, newest first.
type Transfers struct {
	Transfers []Transfer `json:"transfers"`
}

// FileCalls holds the operations on files between PCs. Each fails with Denied inside an agent.
type FileCalls struct{ link Link }

// SendFiles starts a transfer and returns its first state immediately. It fails with NotFound
// for an unknown PC, with Unavailable if that PC is not connected, and if a path cannot be
// read.
func (c FileCalls) SendFiles(ctx context.Context, args SendFilesArgs) (Transfer, error) {
	return OpSendFiles.Call(ctx, c.link, args)
}

// Transfer returns the transfer once it is newer than the revision Seen. It fails with NotFound
// for an unknown transfer, and with Unavailable if the broker ends.
func (c FileCalls) Transfer(ctx context.Context, args TransferArgs) (Transfer, error) {
	return OpTransfer.Call(ctx, c.link, args)
}

// Transfers lists the sent and received transfers. It fails with Unsupported if the broker
// links with no other PCs.
func (c FileCalls) Transfers(ctx context.Context) (Transfers, error) {
	return OpTransfers.Call(ctx, c.link, Empty{})
}

// CancelTransfer cancels a running transfer. It fails with NotFound for an unknown transfer,
// and with Conflict if the transfer has ended.
func (c FileCalls) CancelTransfer(ctx context.Context, id string) (Transfer, error) {
	return OpCancelTransfer.Call(ctx, c.link, TransferArgs{ID: id})
}
