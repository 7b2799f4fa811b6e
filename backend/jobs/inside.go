package jobs

import (
	"errors"
	"net"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
)

// A process inside a job acts as that job only. Its own claims and the secrets that it
// can read give it no other identity (JOB-11).

// JobOf returns the name of the running job that a process belongs to, or "". It fails
// with Denied if the process or the job's runner has ended. Remaining processes of a
// dead runner have no identity (SEC-08).
func (j *core) JobOf(process job.Process) (string, error) {
	return j.known(j.trees.JobOf(process))
}

// JobOfConn is JobOf for the process at the other end of a TCP connection. It also
// fails with Unavailable if no process, or more than one, holds the connection. A
// program that has just started another one briefly holds it twice.
func (j *core) JobOfConn(conn net.Conn) (string, error) {
	return j.known(j.trees.JobOfConn(conn))
}

func (j *core) known(name string, err error) (string, error) {
	if err == nil && name != "" && j.trees.RunnerIsGone(name) {
		err = bridge.Errorf(bridge.Denied, "this process is part of %s, a delegated job whose runner has ended: it is being ended, too", name)
		return name, err
	}
	return name, errNobody(err)
}

func errNobody(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrNoHolder):
		return bridge.WithCause(bridge.Unavailable, err, "Bridge cannot tell which program opened this connection, so it is refused while a delegated job runs: try again")
	case errors.Is(err, sandbox.ErrLowered):
		return bridge.WithCause(bridge.Denied, err, "a delegated job may have started this program: "+sandbox.ErrLowered.Error())
	case errors.Is(err, sandbox.ErrManyHolders):
		return bridge.WithCause(bridge.Unavailable, err, "more than one program has this connection open, so it is refused while a delegated job runs: try again")
	}
	return bridge.WithCause(bridge.Denied, err, "the program that opened this connection has ended, so it is refused while a delegated job runs")
}

// Prove fails with Unauthorized if the token is not that of the running job.
func (j *core) Prove(name, token string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.runs[name]; r == nil || r.token == "" || r.token != token {
		return bridge.Errorf(bridge.Unauthorized, "that is not the secret of %s, or it does not run: only the job itself has its name", name)
	}
	return nil
}

// recordProcessesLocked records the processes of a run.
func (j *core) recordProcessesLocked(r *run, host *job.Host) {
	var runner job.Process
	if host != nil {
		runner = job.Process{PID: host.PID, Identity: host.Identity}
	}
	j.trees.Set(sandbox.Mark{Job: r.job, Token: r.token}, runner, r.agents)
}
