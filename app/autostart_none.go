//go:build (!cgo && windows) || darwin

package app

import "errors"

// login stands in where the library cannot be compiled in: on Windows it is
// partly written in C.
type login struct{}

const noLogin = "This build cannot switch the start at login: it was made without a C compiler"

func (a Autostart) login() login { return login{} }

func (login) enabled() bool       { return false }
func (login) enable() error       { return errors.New(noLogin) }
func (login) disable() error      { return errors.New(noLogin) }
func (login) unavailable() string { return noLogin }
