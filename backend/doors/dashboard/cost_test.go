package dashboard

import (
	"testing"

	"bridge/backend/doors/dashboard/dto"
)

func TestCTX_03_ThePageShowsWhatBridgePutIntoEachSession(t *testing.T) {
	golden(t, "cost", newWorld(t).get("/api/cost").body)
	without := decode[dto.Costs](t, newWorld(t, func(o *Options) { o.Broker = nil }).get("/api/cost"))
	if without.BytesPerToken != 4 || without.Sessions == nil || len(without.Sessions) != 0 {
		t.Errorf("without a broker: %+v", without)
	}
}
