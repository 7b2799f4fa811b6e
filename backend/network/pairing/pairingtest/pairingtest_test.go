package pairingtest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type heard struct {
	from  remote.PC
	frame remote.Frame
}

func TestRMT_24_EachTransportDoesTheSame(t *testing.T) {
	for name, join := range all() {
		t.Run(name, func(t *testing.T) {
			laptop, desk := join(t, "remote-jobs-v1")
			came := make(chan heard, 100)
			desk.Serve(func(from remote.PC, frame remote.Frame) { came <- heard{from, frame} })
			for i := range 20 {
				payload := json.RawMessage(`{"peer":{"id":"somebody else"},"n":` + strconv.Itoa(i) + `}`)
				if err := laptop.Send(t.Context(), desk.Self.ID, remote.Frame{Type: "x", Payload: payload}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 20 {
				got := <-came
				if got.from != laptop.Self {
					t.Fatalf("frame %d came from %+v, not from the PC that was proved", i, got.from)
				}
				if !strings.HasSuffix(string(got.frame.Payload), `"n":`+strconv.Itoa(i)+`}`) {
					t.Fatalf("frame %d is %s", i, got.frame.Payload)
				}
			}
			if status, err := laptop.Of(desk.Self.ID); err != nil || !status.Up || status.Name != "desk" || !status.Can("remote-jobs-v1") || status.Can("x") {
				t.Errorf("it stands with desk as %+v, %v", status, err)
			}
			if all := laptop.Status(); len(all) != 1 || all[0].ID != desk.Self.ID {
				t.Errorf("it knows %+v", all)
			}
			refused := func(what, id string, frame remote.Frame, want bridge.Code) {
				t.Helper()
				if err := laptop.Send(t.Context(), id, frame); bridge.CodeOf(err) != want {
					t.Errorf("%s: %v, want %s", what, err, want)
				}
			}
			refused("to nobody", "nobody", remote.Frame{Type: "x"}, bridge.Unauthorized)
			large := json.RawMessage(`"` + strings.Repeat("x", remote.MaxFrameBytes) + `"`)
			refused("too large", desk.Self.ID, remote.Frame{Type: "x", Payload: large}, bridge.TooLarge)
			desk.Cut()
			refused("after the cut", desk.Self.ID, remote.Frame{Type: "x"}, bridge.Unavailable)
			if status, err := laptop.Of(desk.Self.ID); err != nil || status.Up {
				t.Errorf("after the cut it stands as %+v, %v", status, err)
			}
		})
	}
}
