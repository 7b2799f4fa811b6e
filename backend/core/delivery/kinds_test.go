package delivery

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindHasARow(t *testing.T) {
	used := map[bridge.Waker]bool{}
	for _, kind := range bridge.Kinds() {
		row, waker := rowOf(kind), bridge.TraitsOf(kind).Waker
		used[waker] = true
		if len(row.mail) == 0 || !row.mail[len(row.mail)-1].open(Facts{Kind: kind}) {
			t.Errorf("%s has no way for mail that is always open", kind)
		}
		if (waker == bridge.NoWaker) != (row.asleep != "") {
			t.Errorf("%s needs a waker, or the reason why none is there", kind)
		}
		if row.child.words == "" || row.child.brief == "" {
			t.Errorf("%s does not say how words reach a sub-agent", kind)
		}
	}
	if len(rows) != len(used) {
		t.Errorf("%d rows, %d wakers", len(rows), len(used))
	}
}
