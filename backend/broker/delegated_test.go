package broker

import (
	"bridge/backend/ipc"
)

// anyJob are delegated jobs that believe everybody.
type anyJob struct{ Delegated }

func (anyJob) JobOf(int) (string, error)    { return "", nil }
func (anyJob) Prove(string, string) error   { return nil }
func (anyJob) MaySend(string, string) error { return nil }
func (anyJob) Disconnected(*ipc.Conn)       {}
