// Package connects decides which unix sockets the processes of a job may connect
// to. A seccomp filter stops each connect call. A supervisor outside of the sandbox
// copies the socket and its address, decides, and connects the copy, so later
// changes by the job have no effect (SEC-10).
//
// The supervisor also opens the job's own parts of shared devices (RWM-22). These
// are the second end of a terminal whose first end the job holds, and shared
// memory, whose names in /dev/shm lead into a folder of the job.
package connects

// Policy lists the unix sockets to which the processes of a job may connect. It
// ignores sockets of other families.
type Policy struct {
	// Broker is the path of the broker's socket, or empty. The job connects to it
	// through a separate process, so that the broker sees a process of the job.
	Broker string
	// Folders are absolute folders without links; the job may connect to the sockets in them.
	Folders []string
	// Sockets are the paths of single sockets that the owner allows.
	Sockets []string
	// Shared is the folder of the job's files in /dev/shm, or empty. The job itself
	// must not be able to write there.
	Shared string
}
