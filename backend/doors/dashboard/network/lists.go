package network

import (
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
)

// ShowLists answers GET /api/network/lists: the sessions and jobs that the paired
// PCs' owners share (RMT-23).
func (n *Network) ShowLists(w http.ResponseWriter, r *http.Request) error {
	if n.opts.Lists == nil {
		return bridge.Errorf(bridge.Unavailable, "other PCs are not reached from here: Bridge's log says why")
	}
	wire := dto.NetworkLists{Peers: []dto.PCList{}}
	for _, list := range n.opts.Lists(r.Context()).Peers {
		wire.Peers = append(wire.Peers, listShape(list))
	}
	return httpjson.WriteJSON(w, wire)
}

func listShape(list api.PCList) dto.PCList {
	wire := dto.PCList{Name: list.Name, ID: list.ID, Sessions: []dto.PCSession{}, Jobs: []dto.PCJob{}, Failed: list.Failed, Messages: list.Messages}
	if list.AsOf != 0 {
		wire.AsOf = &list.AsOf
	}
	for _, session := range list.Sessions {
		wire.Sessions = append(wire.Sessions, dto.PCSession{Name: session.Name, Agent: session.Agent, State: session.State, Cwd: session.Cwd, Since: session.Since})
	}
	for _, job := range list.Jobs {
		wire.Jobs = append(wire.Jobs, dto.PCJob{Name: job.Name, Agent: job.Agent, Status: job.Status, Title: job.Title, Cwd: job.Cwd, Since: job.Since})
	}
	return wire
}
