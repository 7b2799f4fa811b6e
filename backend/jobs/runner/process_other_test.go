//go:build !linux

package runner

// testRunJob is for Linux, where the end of a whole tree can be seen.
func testRunJob([]string) int { return 1 }
