package sandbox

import "golang.org/x/sys/unix"

// olderFileCalls take paths without a folder.
var olderFileCalls = []fileCall{
	{number: unix.SYS_OPEN, does: OpenCall, folder: -1, paths: []int{0}, flags: 1},
	{number: unix.SYS_LINK, does: LinkCall, folder: -1, paths: []int{0, 1}, flags: -1},
	{number: unix.SYS_UNLINK, does: UnlinkCall, folder: -1, paths: []int{0}, flags: -1},
}
