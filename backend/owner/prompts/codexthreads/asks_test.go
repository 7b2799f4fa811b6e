package codexthreads

import (
	"fmt"
	"testing"

	"bridge/backend/core/prompt"
)

// toldDesk notes what it is told of prompts.
type toldDesk struct {
	Desk
	signs map[string]prompt.Sign
}

func (d *toldDesk) Report(_ any, id string, sign prompt.Sign) error {
	d.signs[id] = sign
	return nil
}

// TestNED_02_AStoppedTurnEndsEachPromptByItself: the end of one prompt, whose answer is
// with codex, is not that of the others.
func TestNED_02_AStoppedTurnEndsEachPromptByItself(t *testing.T) {
	for range 50 { // maps come in any order
		desk := &toldDesk{signs: map[string]prompt.Sign{}}
		s := &server{opts: Options{Desk: desk}, threads: map[string]*thread{}}
		asks := s.threadLocked("thread").asks
		for i := range 6 {
			asks[fmt.Sprint(i)] = &ask{prompt: fmt.Sprint(i), sent: i == 3}
		}
		s.endedLocked("thread", prompt.Stopped)
		for id, sign := range desk.signs {
			want := prompt.Stopped
			if id == "3" {
				want = prompt.Gone
			}
			if sign != want {
				t.Fatalf("prompt %s is told %v, want %v", id, sign, want)
			}
		}
		if len(desk.signs) != 6 || len(asks) != 0 {
			t.Fatalf("%d prompts are told, %d are left", len(desk.signs), len(asks))
		}
	}
}
