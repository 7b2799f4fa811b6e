package scripted

import (
	"net"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
)

// A process that Isolate did not start is refused, whatever its environment says.
func TestCAN_01_AProcessOfTheMachineIsRefused(t *testing.T) {
	here, err := namespaces()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"none": "", "by hand": "1", "its own": here} {
		t.Setenv(insideVar, value)
		if err := checkApart(); bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	leads := slices.ContainsFunc(all, func(item net.Interface) bool { return item.Flags&net.FlagUp != 0 && item.Flags&net.FlagLoopback == 0 })
	if err := CheckAlone(); (bridge.CodeOf(err) == bridge.Denied) != leads {
		t.Errorf("networks %v: %v", all, err)
	}
}
