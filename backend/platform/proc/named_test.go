package proc

import (
	"os"
	"testing"
	"time"
)

func TestMSG_06_AProcessHasANameForGood(t *testing.T) {
	own := Name(os.Getpid())
	if own.PID != os.Getpid() || own.Ended() {
		t.Errorf("this process: %+v, ended %t", own, own.Ended())
	}
	if own.Name != "" {
		reused := Named{Name: own.Name + "x", PID: own.PID}
		if !reused.Ended() {
			t.Error("another process under the same id passes for it")
		}
	}
	if (Named{Name: "7:x"}).Ended() {
		t.Error("what another program named is not known to have ended")
	}
	if own.Since == 0 || own.Since > time.Now().UnixMilli() || Began(0) != 0 {
		t.Errorf("it began at %d, nobody at %d", own.Since, Began(0))
	}
}
