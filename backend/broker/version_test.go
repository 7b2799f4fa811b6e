package broker

import (
	"context"
	"testing"

	"bridge/backend/broker/mux"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestMSG_01_ACallerOfANewerVersionIsServed(t *testing.T) {
	operation := mux.By(api.Op[session.HookCall, string]{}, func(_ context.Context, _ *link, call session.HookCall) (string, error) {
		return call.SessionID, nil
	})
	got, err := operation.Serve(t.Context(), nil, []byte(`{"sessionId":"s1","whatComesNext":{"more":true}}`))
	if err != nil || got != "s1" {
		t.Errorf("a hook of a newer version is answered with %v, %v", got, err)
	}
}
