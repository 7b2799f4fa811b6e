package delivery

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindHasARow(t *testing.T) {
	if len(table) != len(bridge.Kinds()) {
		t.Errorf("%d rows, %d kinds", len(table), len(bridge.Kinds()))
	}
	for _, kind := range bridge.Kinds() {
		row := table[kind]
		if len(row.mail) == 0 || !row.mail[len(row.mail)-1].open(Facts{Kind: kind}) {
			t.Errorf("%s has no way for mail that is always open", kind)
		}
		if row.server == "" {
			t.Errorf("%s does not say how its MCP server starts again", kind)
		}
		if (row.waker == NoWaker) != (row.asleep != "") {
			t.Errorf("%s needs a waker, or the reason why none is there", kind)
		}
		if row.child.words == "" || row.child.brief == "" {
			t.Errorf("%s does not say how words reach a sub-agent", kind)
		}
	}
}
