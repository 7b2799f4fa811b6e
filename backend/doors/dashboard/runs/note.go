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
func (s *Runs) Note(view api.JobView, childID, body string, sessions []api.Peer) (chat.Outcome, error) {
	child, err := childOf(view, childID, sessions)
	if err != nil {
		return chat.Outcome{}, err
	}
	id := uuid.NewString()
	result, err := s.jobs.Say(id, job.Control{Job: view.Job, Message: chat.ParentNote(child.ID, child.Title, body), By: bridge.OwnerName})
	if err != nil {
		return chat.Outcome{}, err
	}
	outcome := chat.Outcome{State: chat.Queued, Transport: chat.Parent, Message: id, Detail: view.Job + " gets it as a note at its next step, and has to tell its child itself."}
	if result.Delivery == nil || *result.Delivery != job.ToRunning {
		outcome.Message, outcome.Detail = "", view.Job+" has ended meanwhile: it goes on with the note, without that child."
	}
	return outcome, nil
}

func childOf(view api.JobView, id string, sessions []api.Peer) (api.Child, error) {
	for _, session := range sessions {
		// A job's session has the job's name and the session id that its runner
		// reported. Another session with that name does not know the id.
		if session.Name != view.Job || session.SessionID == nil || view.Session == "" || *session.SessionID != view.Session {
			continue
		}
		if at := slices.IndexFunc(session.Children, func(c api.Child) bool { return c.ID == id }); at >= 0 {
			return session.Children[at], nil
		}
	}
	return api.Child{}, bridge.Errorf(bridge.Conflict, "%s has no native child of that id", view.Job)
}

// NoteDelivery returns the delivery state of a note.
func (s *Runs) NoteDelivery(id string) jobfiles.Way { return s.jobs.NoteDelivery(id) }
