package sharing

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/platform/ipc/api"
)

// views is what a PC has shown of itself. Many goroutines read it at once.
type views struct {
	mu     sync.Mutex
	window remote.Window // of its requests to this PC
	list   remote.List
	asOf   int64         // when the list arrived; 0 for never
	shift  int64         // how far its clock was behind then
	failed string        // why there is no newer list
	rid    string        // of the pending request, "" for none
	came   chan struct{} // closed when the request is answered
}

func newViews() *views { return &views{} }

// Lists returns what all paired PCs show of themselves. It requests lists that are not fresh.
func (s *Sharing) Lists(ctx context.Context) api.NetworkLists {
	all := s.opts.Transport.Status()
	lists := api.NetworkLists{Peers: make([]api.PCList, len(all))}
	var tasks sync.WaitGroup
	for i, status := range all {
		tasks.Go(func() { lists.Peers[i] = s.list(ctx, status) })
	}
	tasks.Wait()
	return lists
}

// Sessions implements broker.Pairs: the sessions of linked PCs that accept messages from here.
func (s *Sharing) Sessions(ctx context.Context) []api.RemoteSession {
	var sessions []api.RemoteSession
	for _, pc := range s.Lists(ctx).Peers {
		if pc.Up && pc.Messages {
			sessions = append(sessions, pc.Sessions...)
		}
	}
	return sessions
}

const errNoLink = "there is no link to it now"

// list returns what one PC shows.
func (s *Sharing) list(ctx context.Context, status remote.Status) api.PCList {
	answer := api.PCList{Name: status.Name, ID: status.ID, Up: status.Up, Sessions: []api.RemoteSession{}, Jobs: []api.RemoteJob{}}
	p := s.workerOf(status.ID)
	if p == nil && status.Up {
		p = s.pair(remote.PC{ID: status.ID, Name: status.Name})
	}
	if p == nil {
		if !status.Up {
			answer.Failed = errNoLink
		}
		return answer
	}
	switch {
	case !status.Up:
		answer.Failed = errNoLink
	case !status.Can(remote.DashboardCapability):
		answer.Failed = remote.ErrUpdate(status, remote.DashboardCapability).Error()
	default:
		p.views.refresh(ctx, s, status.ID)
	}
	v := p.views
	v.mu.Lock()
	defer v.mu.Unlock()
	answer.AsOf, answer.Messages = v.asOf, v.list.Messages
	if answer.Failed == "" {
		answer.Failed = v.failed
	}
	for _, session := range v.list.Sessions {
		answer.Sessions = append(answer.Sessions, api.RemoteSession{Name: status.Name + "/" + session.Name, Agent: session.Agent, State: session.State, Cwd: session.Cwd, Since: session.Since + v.shift})
	}
	for _, listing := range v.list.Jobs {
		answer.Jobs = append(answer.Jobs, api.RemoteJob{Name: status.Name + "/" + listing.Name, Agent: listing.Agent, Status: listing.State, Title: listing.Title, Cwd: listing.Cwd, Since: listing.Since + v.shift})
	}
	return answer
}

// refresh requests the list, unless it is fresh, and waits for the answer up to
// Timing.Answer. Concurrent callers wait for the same answer.
func (v *views) refresh(ctx context.Context, s *Sharing, id string) {
	v.mu.Lock()
	if v.asOf != 0 && v.failed == "" && s.now()-v.asOf < s.opts.Timing.Fresh.Milliseconds() {
		v.mu.Unlock()
		return
	}
	rid, came, first := v.rid, v.came, v.rid == ""
	if first {
		rid, came = uuid.NewString(), make(chan struct{})
		v.rid, v.came = rid, came
	}
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timing.Answer)
	defer cancel()
	var err error
	if first {
		var payload []byte
		if payload, err = remote.EncodeView(remote.View{Rid: rid, Now: s.now()}); err == nil {
			err = s.opts.Transport.Send(ctx, id, remote.Frame{Type: remote.DashboardFrame, Payload: payload})
		}
	}
	if err == nil {
		select {
		case <-came:
			return
		case <-ctx.Done():
			err = bridge.Errorf(bridge.Unavailable, "it did not answer in time")
		case <-s.tasks.Done():
			err = s.tasks.Context().Err()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rid == rid { // no answer is expected any more
		v.failed, v.rid = err.Error(), ""
		close(v.came)
	}
}

// handleView processes a request for this PC's list, or the answer to its own request.
func (p *pair) handleView(ctx context.Context, data []byte) error {
	in, err := remote.ParseView(data)
	if err != nil {
		return err
	}
	if !in.IsQuestion() {
		p.views.take(in, p.pc.Name, p.now())
		return nil
	}
	out := remote.View{Rid: in.Rid, Now: p.now()}
	list, err := p.show(ctx)
	if err == nil {
		out.List = &list
	} else {
		out.Error = remote.Answered("", err).Error
	}
	payload, err := remote.EncodeView(out)
	return p.send(ctx, remote.DashboardFrame, payload, err)
}

func (v *views) take(in remote.View, host string, now int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if in.Rid != v.rid {
		return // not requested, or given up
	}
	v.rid = ""
	close(v.came)
	if in.Error != nil { // the list shown before is no longer shown
		v.failed, v.list, v.asOf = host+" says: "+in.Error.Message, remote.List{}, 0
		return
	}
	v.failed, v.list, v.asOf, v.shift = "", *in.List, now, now-in.Now
}

// show returns the list that the owner shows to that PC now.
func (p *pair) show(ctx context.Context) (remote.List, error) {
	p.views.mu.Lock()
	err := p.views.window.Take(remote.State, p.opts.Now())
	p.views.mu.Unlock()
	if err != nil {
		return remote.List{}, err
	}
	shownErr := p.allows(remote.ShareDashboard, p.pc.Name)
	list := remote.List{Messages: p.allows(remote.ShareMessages, p.pc.Name) == nil, Shown: shownErr == nil, Sessions: []remote.Listed{}, Jobs: []remote.Listed{}}
	if !list.Messages && !list.Shown {
		return list, shownErr
	}
	peers, err := p.opts.Broker.Peers(ctx)
	if err != nil {
		return list, err
	}
	for _, peer := range peers {
		if job.IsName(peer.Name) {
			continue
		}
		listing := remote.Listed{Name: peer.Name, Agent: peer.Agent, State: peer.State, Since: peer.Since}
		if list.Shown {
			listing.Cwd = peer.Cwd
		}
		list.Sessions = append(list.Sessions, listing)
	}
	if list.Shown && p.opts.Jobs != nil {
		for _, view := range p.opts.Jobs() {
			list.Jobs = append(list.Jobs, remote.Listed{Name: view.Job, Agent: view.Agent, State: string(view.Status), Title: view.Title, Cwd: view.Workdir, Since: view.StartedAt})
		}
	}
	return list, nil
}
