// Package mux dispatches the operations of the local link: each row of ipc/api's table is
// served by a typed method of the broker or of another part of its process.
package mux

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Mux holds the method of each operation. It is filled before the first connection, and only
// read from then on.
type Mux struct {
	served map[string]operation
	guard  func(ctx context.Context, conn *ipc.Conn) error // nil for none
}

type operation struct {
	api.Row
	serve  func(ctx context.Context, l *presence.Link, args json.RawMessage) (any, error)
	absent bool // the part that serves it is not there
}

// Part serves operations in the broker's process.
type Part interface {
	// Register adds the operations of the part, before anyone connects.
	Register(m *Mux)
}

// New returns a Mux that serves nothing.
func New() *Mux { return &Mux{served: map[string]operation{}} }

// Guarded returns a view of the same Mux. What is added through the view is served only if
// guard returns nil.
func (m *Mux) Guarded(guard func(ctx context.Context, conn *ipc.Conn) error) *Mux {
	return &Mux{served: m.served, guard: guard}
}

// HandleLink serves an operation by a method that takes the broker's link of the caller. A
// caller of a newer version may send members that this broker does not know: they are
// ignored, because an upgrade beside a running broker must not shut out its sessions. A
// change of meaning changes ipc.Protocol. HandleLink panics if the operation is served
// already.
func HandleLink[A, R any](m *Mux, op api.Op[A, R], method func(context.Context, *presence.Link, A) (R, error)) {
	guard := m.guard
	m.add(operation{Row: op.Row, serve: func(ctx context.Context, l *presence.Link, raw json.RawMessage) (any, error) {
		if guard != nil {
			if err := guard(ctx, l.Conn); err != nil {
				return nil, err
			}
		}
		var args A
		if err := bridge.DecodeAdditive(raw, bridge.MaxFrameBytes, &args); err != nil {
			return nil, err
		}
		return method(ctx, l, args)
	}})
}

// Handle is HandleLink for a method that takes the caller's connection.
func Handle[A, R any](m *Mux, op api.Op[A, R], method func(context.Context, *ipc.Conn, A) (R, error)) {
	HandleLink(m, op, func(ctx context.Context, l *presence.Link, args A) (R, error) { return method(ctx, l.Conn, args) })
}

// Refuse answers operations with err until a part serves them.
func (m *Mux) Refuse(err error, rows ...api.Row) {
	for _, row := range rows {
		m.add(operation{Row: row, absent: true, serve: func(context.Context, *presence.Link, json.RawMessage) (any, error) { return nil, err }})
	}
}

func (m *Mux) add(o operation) {
	if before, has := m.served[o.Name]; has && !before.absent {
		panic("the operation " + o.Name + " is served twice")
	}
	m.served[o.Name] = o
}

// Names returns the names of all operations, sorted.
func (m *Mux) Names() []string { return slices.Sorted(maps.Keys(m.served)) }

// Has reports whether an operation has a row.
func (m *Mux) Has(op string) bool { return m.served[op].serve != nil }

// Check fails with Denied if a caller of that role may not call the operation. Inside names the
// delegated job that the caller is part of, "" for none.
func (m *Mux) Check(op string, role api.Role, inside string) error {
	row := m.served[op].Row
	if err := row.CheckCaller(role); err != nil || inside == "" {
		return err
	}
	return row.CheckJob(inside)
}

// Serve answers one request. It fails with Invalid for an unknown operation, and with
// Unavailable if the caller's context ended meanwhile.
func (m *Mux) Serve(ctx context.Context, l *presence.Link, op string, args json.RawMessage) (any, error) {
	o, has := m.served[op]
	if !has {
		return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
	}
	result, err := o.serve(ctx, l, args)
	if err != nil && ctx.Err() != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "the caller has given up")
	}
	return result, err
}

// Askers finds the caller behind a connection; the broker is one.
type Askers interface {
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (presence.Asker, error)
}

// CheckOwner fails with Denied if an agent started the caller: only the owner may do what does
// names, as in "decides about other PCs" (JOB-11).
func CheckOwner(ctx context.Context, askers Askers, conn *ipc.Conn, does string) error {
	asker, err := askers.Asker(ctx, conn, api.Caller{})
	if err != nil {
		return err
	}
	return asker.OnlyOwner(does)
}

// ForOwner returns a method for Handle that serves the owner alone, see [CheckOwner].
func ForOwner[A, R any](askers Askers, does string, method func(context.Context, A) (R, error)) func(context.Context, *ipc.Conn, A) (R, error) {
	return func(ctx context.Context, conn *ipc.Conn, args A) (R, error) {
		if err := CheckOwner(ctx, askers, conn, does); err != nil {
			var none R
			return none, err
		}
		return method(ctx, args)
	}
}
