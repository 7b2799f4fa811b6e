package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

var someKinds = []bridge.AgentKind{bridge.Claude, bridge.Codex}

func TestCTX_01_WhichAgentsArePresentIsLookedUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		goOn := make(chan struct{})
		i := &installed{now: time.Now, find: func() []bridge.AgentKind {
			this := looks.Add(1)
			<-goOn
			if this > 1 {
				time.Sleep(kindsPatience)
			}
			return someKinds
		}}
		began := time.Now()
		if known := i.kinds(t.Context(), false); known != nil || time.Since(began) != 0 {
			t.Errorf("without a wait %v after %s", known, time.Since(began))
		}
		if known := i.kinds(t.Context(), true); known != nil || time.Since(began) != kindsPatience {
			t.Errorf("of a long look %v after %s", known, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if known := i.kinds(ctx, true); known != nil || time.Since(began) != kindsPatience {
			t.Errorf("for a connection that has ended %v after %s", known, time.Since(began))
		}
		go func() {
			time.Sleep(kindsPatience / 2)
			close(goOn)
		}()
		if known := i.kinds(t.Context(), true); !slices.Equal(known, someKinds) || time.Since(began) != kindsPatience*3/2 {
			t.Errorf("of a look that ends in time %v after %s", known, time.Since(began))
		}
		i.kinds(t.Context(), true)
		if looks.Load() != 1 {
			t.Errorf("%d looks, want 1", looks.Load())
		}
		time.Sleep(kindsAge + time.Second)
		began = time.Now()
		if known := i.kinds(t.Context(), true); !slices.Equal(known, someKinds) || time.Since(began) != 0 {
			t.Errorf("during another look %v after %s", known, time.Since(began))
		}
		time.Sleep(2 * kindsPatience) // it ends
		if looks.Load() != 2 {
			t.Errorf("%d looks after a minute, want 2", looks.Load())
		}
	})
}

// brokerOf answers every request with one value.
type brokerOf struct {
	ipc.Handler
	answer any
	err    error
}

func (b brokerOf) Handle(context.Context, *ipc.Conn, string, json.RawMessage) (any, error) {
	return b.answer, b.err
}

func TestCTX_01_ARegistrationIsToldOfTheAgents(t *testing.T) {
	for _, tt := range []struct {
		name   string
		op     string
		answer any
		err    error
		want   any
	}{
		{"a registration", api.OpRegister.Name, api.Registered{ID: "p1"}, nil, api.Registered{ID: "p1", Kinds: someKinds}},
		{"a refused one", api.OpRegister.Name, api.Registered{}, errors.New("no"), api.Registered{}},
		{"something else", api.OpPeers.Name, api.PeersResult{Self: "a"}, nil, api.PeersResult{Self: "a"}},
	} {
		t.Run("CTX-01 "+tt.name, func(t *testing.T) {
			h := kindsHandler{brokerOf{answer: tt.answer, err: tt.err}, &installed{now: time.Now, find: func() []bridge.AgentKind { return someKinds }}}
			got, err := h.Handle(t.Context(), nil, tt.op, json.RawMessage(`{}`))
			text, textErr := json.Marshal(got)
			want, wantErr := json.Marshal(tt.want)
			if !errors.Is(err, tt.err) || textErr != nil || wantErr != nil || string(text) != string(want) {
				t.Errorf("answered with %s (%v), want %s", text, err, want)
			}
		})
	}
}
