// Package dto holds the JSON of the dashboard's answers, a file for each noun. It
// is the page's contract: it stands on the words of the rules alone, below the local
// link, the store and maintenance, so that a change of theirs changes no answer by
// itself. The dashboard's testdata has a golden file of each, which the page's tests
// read too. No list is null. Times are Unix epoch milliseconds.
package dto

// Answer is whatever the dashboard answers with: what does not stand here cannot be
// written.
type Answer interface {
	State | Activity | Hours | Messages | Message | Archive | Search | Decisions | History | Decided | Chat | Receipt | Sent |
		Agents | Connected | Change | Settings | Report | Drills | Sizes | Tasks | Progress | Done | Error |
		RunDetail | RunLog | Approvals | Approval | Prompting | AnsweredBefore | Said |
		RunDiff | Finished | Conflicting | Models | Usage |
		Network | Paired | NetworkPlan | NetworkLists | Needs | Questions | Question | QuestionBefore | Rules | TakenBack
}

// Error is every refusal.
type Error struct {
	Error string `json:"error"`
}

// Done is the answer where there is nothing to say.
type Done struct{}

// List returns items, never nil.
func List[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Each makes a list of shapes, never nil.
func Each[T, S any](items []T, of func(T) S) []S {
	shapes := make([]S, len(items))
	for i, item := range items {
		shapes[i] = of(item)
	}
	return shapes
}
