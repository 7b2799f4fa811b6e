package proc

import "os"

// Namespace returns the namespace of this process's ids, such as
// "pid:[4026531836]", or "" if the system does not report it. A process id has no
// meaning in another namespace.
func Namespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
