package runs

import (
	"slices"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/job"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// Find returns a running delegated job of this PC, which can receive a note.
func (s *Runs) Find(name string) (api.JobView, error) {
	if s.jobs == nil || !job.IsName(name) {
		return api.JobView{}, bridge.Errorf(bridge.NotFound, "no delegated job of this PC is called %q", name)
	}
	found, err := s.jobs.Detail(name)
	switch {
	case err != nil:
		return api.JobView{}, err
	case found.Remote != nil:
		return api.JobView{}, bridge.Errorf(bridge.NotFound, "%s runs on another PC: its native children take no notes from here", name)
	case !found.Status.IsActive():
		return api.JobView{}, bridge.Errorf(bridge.Conflict, "%s is %s: no native child of it works", name, found.Status)
	}
	return found.JobView, nil
}

// Note asks a job to pass on a note about its native child, which must be in the
// list of the job's own session (CHT-12). sessions are the live ones, including the
// jobs' own.
func (s *Runs) Note(to api.JobView, childID, body string, sessions []api.Peer) (chat.Outcome, error) {
	child, err := childOf(to, childID, sessions)
	if err != nil {
		return chat.Outcome{}, err
	}
	id := uuid.NewString()
	said, err := s.jobs.Say(id, job.Control{Job: to.Job, Message: chat.ParentNote(child.ID, child.Title, body)})
	if err != nil {
		return chat.Outcome{}, err
	}
	outcome := chat.Outcome{State: chat.Queued, Transport: chat.Parent, Message: id, Detail: to.Job + " gets it as a note at its next step, and has to tell its child itself."}
	if said.Delivery == nil || *said.Delivery != job.ToRunning {
		outcome.Message, outcome.Detail = "", to.Job+" has ended meanwhile: it goes on with the note, without that child."
	}
	return outcome, nil
}

func childOf(to api.JobView, id string, sessions []api.Peer) (api.Child, error) {
	for _, session := range sessions {
		// A job's session has the job's name and the session id that its runner
		// reported. Another session with that name does not know the id.
		if session.Name != to.Job || session.SessionID == nil || to.Session == "" || *session.SessionID != to.Session {
			continue
		}
		if at := slices.IndexFunc(session.Children, func(c api.Child) bool { return c.ID == id }); at >= 0 {
			return session.Children[at], nil
		}
	}
	return api.Child{}, bridge.Errorf(bridge.Conflict, "%s has no native child of that id", to.Job)
}

// Heard returns the delivery state of a note.
func (s *Runs) Heard(id string) jobfiles.Way { return s.jobs.Heard(id) }
