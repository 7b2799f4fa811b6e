package proc

import "os"

// Namespace names the namespace of this process's process numbers, such as
// "pid:[4026531836]". It returns "" where the system does not tell. A number says nothing
// in another namespace.
func Namespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
