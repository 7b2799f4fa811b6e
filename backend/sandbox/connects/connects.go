// Package connects decides to which unix sockets the processes of a job may connect. A
// filter of system calls stops each connect call; a supervisor outside of the sandbox
// copies the socket and its address, decides, and connects the copy, so that nothing that
// the job changes meanwhile is used (SEC-10).
package connects

// Policy says to which unix sockets the processes of a job may connect. Sockets of other
// families are not its business.
type Policy struct {
	// Broker is the path of the broker's socket, empty for none. The job connects to it by
	// a process of its own, so that the broker sees a process of the job.
	Broker string
	// Folders are absolute folders without links; a job connects to the sockets in them.
	Folders []string
	// Sockets are the paths of single sockets that the owner allows.
	Sockets []string
}
