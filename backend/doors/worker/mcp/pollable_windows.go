package mcp

import "io"

// pollable returns the input unchanged: Windows has no such mode.
func pollable(input io.Reader, _ ...io.Writer) (from io.Reader, restore func()) {
	return input, func() {}
}
