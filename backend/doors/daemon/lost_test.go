package daemon

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/lifecycle"
)

// A store that goes away while a broker starts is not rebuilt.
func TestSTO_17_AStoreThatVanishesDuringTheStartIsNotMadeAnew(t *testing.T) {
	home := newHome(t)
	end(t, start(t, options(home, "serve")))
	d := &Daemon{opts: options(home, "serve"), tasks: lifecycle.NewTasks(t.Context())}
	if err := errors.Join(d.checkStore(t.Context()), d.elect(t.Context()), d.register(t.Context()), os.Remove(home.DB())); err != nil {
		t.Fatal(err)
	}
	if err := d.openStore(t.Context()); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("openStore = %v", err)
	}
	if _, err := os.Lstat(home.DB()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is in its place: %v", err)
	}
	end(t, d)
}
