package jobs

import (
	"net"

	"bridge/backend/bridge"
	"bridge/backend/job"
	"bridge/backend/sandbox"
)

// Whoever is inside a job speaks to Bridge as that job, or not at all: neither what a
// process says of itself nor a secret that it can read makes it another (JOB-11).

// JobOf names the running job that a process is part of, "" for none.
func (j *core) JobOf(pid int) (string, error) {
	name, err := j.trees.JobOf(pid)
	return name, errNobody(err)
}

// JobOfConn is JobOf for the process at the other end of a TCP connection.
func (j *core) JobOfConn(conn net.Conn) (string, error) {
	name, err := j.trees.JobOfConn(conn)
	return name, errNobody(err)
}

func errNobody(err error) error {
	if err == nil {
		return nil
	}
	return bridge.WithCause(bridge.Denied, err, "the process that opened this connection is gone: while delegated jobs run, nobody can tell whose it was")
}

// Prove refuses whoever is not that job while it runs.
func (j *core) Prove(name, token string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.runs[name]; r == nil || r.token == "" || r.token != token {
		return bridge.Errorf(bridge.Unauthorized, "that is not the secret of %s, or it does not run: only the job itself has its name", name)
	}
	return nil
}

// standsLocked notes where a run has its processes.
func (j *core) standsLocked(r *run, host *job.Host) {
	var runner job.Process
	if host != nil {
		runner = job.Process{PID: host.PID, Identity: host.Identity}
	}
	j.trees.Set(sandbox.Mark{Job: r.job, Token: r.token}, runner, r.agents)
}
