package needs_test

import (
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
)

// TestSTO_18_WhatCannotBeReadIsAnErrorInThreeLines: what is wrong, what it means and what to
// do, with commands as a person types them; a finding that is known stays.
func TestSTO_18_WhatCannotBeReadIsAnErrorInThreeLines(t *testing.T) {
	const sentence, means, do = "The newest messages cannot be read: it is damaged", "Parts fail.", "Restore it with `bridge doctor --restore s-1`."
	var facts needs.Facts
	facts.AddUnreadable([]string{sentence, "another"}, means, do, 7)
	list := needs.List(facts, now)
	if len(list) != 1 || list[0].ID != "storage:1" || list[0].Since != 7 || len(facts.Unreadable) != 2 {
		t.Fatalf("%+v of %+v", list, facts)
	}
	line := func(args ...string) string { return "bridge " + strings.Join(args, " ") + " --home /h" }
	want := "  " + sentence + ".\n  Parts fail.\n  Restore it with `bridge doctor --restore s-1 --home /h`.\n  bridge doctor --home /h\n"
	if text := needs.Text(list, now, line); !strings.HasSuffix(text, want) {
		t.Errorf("the text is\n%s\nwant at its end\n%s", text, want)
	}
	known := needs.Facts{Storage: needs.StorageFact{Errors: 2, First: "jobs.json: it is damaged", Since: 3}}
	known.AddUnreadable([]string{sentence}, means, do, 7)
	if known.Storage.Errors != 2 || known.Storage.Since != 3 || known.Storage.Means != "" {
		t.Errorf("a known finding became %+v", known.Storage)
	}
	var none needs.Facts
	if none.AddUnreadable(nil, means, do, 7); none.Storage != (needs.StorageFact{}) {
		t.Errorf("without anything unreadable there is %+v", none.Storage)
	}
}

// TestSTO_18_WhatWaitsForAPausedPairMayBeUnknown: then its card says "?", never 0.
func TestSTO_18_WhatWaitsForAPausedPairMayBeUnknown(t *testing.T) {
	list := needs.List(exchangeFact(true, bridge.UnknownCount), now)
	if len(list) != 1 || !strings.HasSuffix(list[0].Detail, "? messages wait.") {
		t.Errorf("%+v", list)
	}
}
