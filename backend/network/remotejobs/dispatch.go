package remotejobs

import (
	"log/slog"

	"bridge/backend/core/remote"
)

// Dispatch returns the handler of remote-job and read frames. It passes requests to the
// executor and answers to the requester. It does not block.
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
