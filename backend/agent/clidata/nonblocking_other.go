//go:build !unix

package clidata

const nonBlocking = 0
