//go:build !linux && !windows

package sandbox

import "bridge/backend/core/job"

func adopt() error { return ErrUnavailable }

func adopts() bool { return false }

func hasChildren() bool { return false }

// marked returns nothing: this process may not read other environments.
func marked(Mark) ([]int, error) { return nil, nil }

func collect([]job.Process) {}
