// Package mux has the operations of the local link served: each is a row of
// ipc/api's table and what serves it, a typed method of the broker or another package's
// part in the broker's process.
package mux

import (
	"context"
	"encoding/json"

	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Operation is one row of the table and what serves it.
type Operation struct {
	api.Row
	Serve func(ctx context.Context, l *presence.Link, args json.RawMessage) (any, error)
}

// Check refuses a caller that may not ask for the operation: by its role, and where it is
// part of a delegated job, whose name inside is, as such.
func (o Operation) Check(role api.Role, inside string) error {
	if err := o.CheckCaller(role); err != nil || inside == "" {
		return err
	}
	return o.CheckJob(inside)
}

// Answer serves one request. Who has given up is told so, whatever that stopped.
func (o Operation) Answer(ctx context.Context, l *presence.Link, args json.RawMessage) (any, error) {
	result, err := o.Serve(ctx, l, args)
	if err != nil && ctx.Err() != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "the caller has given up")
	}
	return result, err
}

// By has a typed method serve an operation. A caller of a newer version may
// say more than this broker understands: an upgrade beside a running broker must
// not shut its sessions out. What changes a meaning changes ipc.Protocol.
func By[A, R any](op api.Op[A, R], method func(context.Context, *presence.Link, A) (R, error)) Operation {
	return Operation{Row: op.Row, Serve: func(ctx context.Context, l *presence.Link, raw json.RawMessage) (any, error) {
		var args A
		if err := bridge.DecodeAdditive(raw, bridge.MaxFrameBytes, &args); err != nil {
			return nil, err
		}
		return method(ctx, l, args)
	}}
}

// Part serves operations in the broker's process that are another package's.
type Part interface {
	Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error)
}

// ByPart is an operation that is served by such a part: the one that is there before anybody
// connects, or, with the error never, by nobody.
func ByPart(there func() Part, row api.Row, never error) Operation {
	return Operation{Row: row, Serve: func(ctx context.Context, l *presence.Link, args json.RawMessage) (any, error) {
		if p := there(); p != nil {
			return p.Handle(ctx, l.Conn, row.Name, args)
		}
		return nil, never
	}}
}
