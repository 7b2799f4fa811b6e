package dashboard

import (
	"reflect"
	"strconv"

	"bridge/backend/doors/dashboard/dto"
)

// baseStates is how many states a page can ask the changes of. A page that shows the
// state before the last ones gets the whole one.
const baseStates = 4

// history has the last states by their tag, the newest last.
type history struct {
	states []dto.State
	built  int64
}

// add gives a state its tag and keeps it as a base for later ones. A tag is not used again,
// also not after a restart at began (Unix milliseconds).
func (h *history) add(began int64, state dto.State) {
	h.built++
	state.Tag = strconv.FormatInt(began, 36) + "-" + strconv.FormatInt(h.built, 36)
	if h.states = append(h.states, state); len(h.states) > baseStates {
		h.states = h.states[1:]
	}
}

// newest returns the state that was added last.
func (h *history) newest() dto.State { return h.states[len(h.states)-1] }

// since returns the newest state as changes of the one with that tag. It returns false if
// that one is not known any more, or there is none.
func (h *history) since(tag string) (dto.StateChanges, bool) {
	for _, base := range h.states {
		if base.Tag != tag {
			continue
		}
		now := h.newest()
		return dto.StateChanges{
			State:    now,
			Since:    base.Tag,
			Messages: changed(base.Messages, now.Messages, func(m dto.Message) string { return m.ID }),
			Peers:    changed(base.Peers, now.Peers, func(p dto.Peer) string { return p.ID }),
		}, true
	}
	return dto.StateChanges{}, false
}

// changed returns the items, each that is the same in base as its id alone.
func changed[T any](base, now []T, id func(T) string) []dto.Item[T] {
	known := make(map[string]T, len(base))
	for _, item := range base {
		known[id(item)] = item
	}
	return dto.Each(now, func(item T) dto.Item[T] {
		old, ok := known[id(item)]
		if ok && reflect.DeepEqual(old, item) {
			return dto.Item[T]{Unchanged: id(item)}
		}
		return dto.Item[T]{Value: item}
	})
}
