package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// SendFilesArgs asks for files and folders to be sent to a paired PC (RMT-20).
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

// Transfer is files on their way to another PC, or from one.
type Transfer struct {
	ID       string            `json:"id"`
	Incoming bool              `json:"incoming"`
	PC       PCName            `json:"pc"`
	State    string            `json:"state"`
	Names    []string          `json:"names"` // the first of what was sent
	Files    int               `json:"files"`
	Bytes    int64             `json:"bytes"`
	Done     int64             `json:"done"`            // of the bytes; while preparing, those that were read
	Folder   string            `json:"folder"`          // where it has arrived; "" elsewhere
	Error    string            `json:"error,omitempty"` // why it failed, or what it waits for
	Code     string            `json:"code,omitempty"`  // of the error
	Started  int64             `json:"startedAt"`       // milliseconds since 1970
	Ended    bridge.UnixMillis `json:"endedAt,omitempty"`
	Revision int64             `json:"revision"` // grows with every change that is worth showing
}

// HasEnded reports whether nothing more comes of it.
func (t Transfer) HasEnded() bool { return t.State == TransferDone || t.State == TransferFailed }

// TransferArgs names a transfer; Seen is the revision that the caller knows.
type TransferArgs struct {
	ID   string `json:"id"`
	Seen int64  `json:"seen"` // a revision
}

// Transfers are those of this PC, the newest first.
type Transfers struct {
	Transfers []Transfer `json:"transfers"`
}

// FileCalls are the operations about files between PCs.
type FileCalls struct{ link Link }

// SendFiles begins to send files and returns what is known of it at once.
func (c FileCalls) SendFiles(ctx context.Context, args SendFilesArgs) (Transfer, error) {
	return OpSendFiles.Call(ctx, c.link, args)
}

// Transfer returns when a transfer has gone on since the revision that was seen.
func (c FileCalls) Transfer(ctx context.Context, args TransferArgs) (Transfer, error) {
	return OpTransfer.Call(ctx, c.link, args)
}

// Transfers lists what was sent and what has arrived.
func (c FileCalls) Transfers(ctx context.Context) (Transfers, error) {
	return OpTransfers.Call(ctx, c.link, Empty{})
}

// CancelTransfer ends a transfer that goes on.
func (c FileCalls) CancelTransfer(ctx context.Context, id string) (Transfer, error) {
	return OpCancelTransfer.Call(ctx, c.link, TransferArgs{ID: id})
}
