//go:build !linux

package main

import (
	"errors"
	"io"
)

func openPageHidden(string, io.Writer) error { return errors.ErrUnsupported }
