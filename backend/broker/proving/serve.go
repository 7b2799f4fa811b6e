package proving

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/ipc/api"
)

// Register serves api.OpRecordProof for the owner alone.
func (s *Service) Register(m *mux.Mux, askers mux.Askers) {
	mux.Handle(m, api.OpRecordProof, mux.ForOwner(askers, "records what `bridge prove` found", s.record))
}

// record stores what the owner's `bridge prove` found.
func (s *Service) record(_ context.Context, made proof.Proof) (api.Empty, error) {
	if s == nil {
		return api.Empty{}, bridge.Errorf(bridge.Unsupported, "this Bridge keeps no proofs")
	}
	return api.Empty{}, s.Record(made)
}
