// Package connects decides to which unix sockets the processes of a job may connect. A
// filter of system calls stops each connect call; a supervisor outside of the sandbox
// copies the socket and its address, decides, and connects the copy, so that nothing that
// the job changes meanwhile is used (SEC-10).
//
// The supervisor also opens what only a job's own is of shared devices (RWM-22): the second
// end of a terminal whose first end a process of the job holds, and shared memory, whose
// names of /dev/shm lead into a folder of the job's.
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
	// Shared is the folder of the files that the job names in /dev/shm, empty for none. The
	// job must not be able to write in it by itself.
	Shared string
}
