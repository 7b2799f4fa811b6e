package mcp

import "io"

// pollable leaves the input as it is: Windows has no such mode.
func pollable(input io.Reader, _ ...io.Writer) (from io.Reader, restore func()) {
	return input, func() {}
}
