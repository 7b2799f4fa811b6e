package bridge

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesAreOrderedAsPeopleDo(t *testing.T) {
	want := []string{
		"", "-", "01", "1", "2", "10", "99999999999999999999998", "99999999999999999999999", "API-1", "api", "api-", "api-01", "api-1", "api-1-2", "api-1-10", "api-2", "api-9", "api-54", "api-100", "api.2", "apia", "b",
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNames)
	if !slices.Equal(got, want) {
		t.Errorf("sorted as\n%q, want\n%q", got, want)
	}
}

// Only an order that agrees with itself sorts.
func TestTheOrderOfNamesIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a01-]{0,5}`)
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if CompareNames(a, b) != -CompareNames(b, a) || (CompareNames(a, b) == 0) != (a == b) {
			t.Fatalf("%q and %q: %d, %d", a, b, CompareNames(a, b), CompareNames(b, a))
		}
		if CompareNames(a, b) <= 0 && CompareNames(b, c) <= 0 && CompareNames(a, c) > 0 {
			t.Fatalf("%q, %q, %q", a, b, c)
		}
	})
}
