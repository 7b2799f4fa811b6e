package remotejobs

import (
	"log/slog"

	"bridge/backend/core/remote"
)

// Dispatch serves remote-job frames, and those by which what jobs wrote down is read:
// requests go to the executor, answers to whoever asked. It waits for neither.
func Dispatch(executor *Executor, requester *Requester, log *slog.Logger) func(from remote.PC, frame remote.Frame) {
	return func(from remote.PC, frame remote.Frame) {
		parse := remote.Parse
		if frame.Type == remote.ReadsFrameType {
			parse = remote.ParseRead
		}
		request, response, err := parse(frame.Payload, remote.Peer{ID: from.ID, Name: from.Name})
		switch {
		case request != nil:
			executor.take(*request, frame.Type, err)
		case err != nil:
			log.Warn("a paired PC sent what is no request and no answer", "peer", from.Name, "err", err)
		default:
			requester.take(from, *response)
		}
	}
}
