package link

import (
	"slices"
	"strings"
	"testing"
)

func TestAddressesThatMeanAllAreNamedOneByOne(t *testing.T) {
	for in, want := range map[string][]string{"127.0.0.1:9": {"127.0.0.1:9"}, "192.168.1.20:4778": {"192.168.1.20:4778"}} {
		if got := Reachable([]string{in}); !slices.Equal(got, want) {
			t.Errorf("Reachable(%s) = %v, want %v", in, got, want)
		}
	}
	own := ownAddresses()
	got := Reachable([]string{"0.0.0.0:9"})
	if len(own) == 0 {
		if !slices.Equal(got, []string{"0.0.0.0:9"}) {
			t.Errorf("without a network it is %v", got)
		}
		return
	}
	for _, address := range got {
		if strings.HasPrefix(address, "0.0.0.0") || !strings.HasSuffix(address, ":9") {
			t.Errorf("%s is none that can be called", address)
		}
	}
}
