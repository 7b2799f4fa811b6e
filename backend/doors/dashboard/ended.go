package dashboard

import (
	"context"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
)

// endedLimit is the number of ended sessions that the page lists at most.
const endedLimit = 500

// ended answers GET /api/sessions/ended (PGE-08).
func (s *sources) ended(w http.ResponseWriter, r *http.Request) error {
	now, err := s.askBroker(r.Context())
	if err != nil {
		return err
	}
	answer, err := s.endedSessions(r.Context(), now)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, answer)
}

// endedSessions returns the sessions that are not connected now, last seen first, at
// most endedLimit of them. A name that several sessions had is listed once. Sessions
// of jobs are left out: the page shows the jobs.
func (s *sources) endedSessions(ctx context.Context, now live) (dto.EndedSessions, error) {
	reader, err := s.reader(ctx)
	if err != nil {
		return dto.EndedSessions{}, err
	}
	people, err := s.directory(ctx, reader, now)
	if err != nil {
		return dto.EndedSessions{}, err
	}
	listed := map[string]bool{bridge.OwnerName: true}
	for _, peer := range people.live {
		listed[peer.Name] = true
	}
	answer := dto.EndedSessions{Sessions: []dto.EndedSession{}}
	for _, peer := range people.known {
		if listed[peer.Name] || job.IsName(peer.Name) {
			continue
		}
		if len(answer.Sessions) == endedLimit {
			answer.More = true
			break
		}
		listed[peer.Name] = true
		answer.Sessions = append(answer.Sessions, dto.EndedSession{Name: peer.Name, Agent: peer.Agent, SeenAt: peer.SeenAt})
	}
	return answer, nil
}
