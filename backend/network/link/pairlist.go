package link

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/disk"
)

// Pair is another PC that this PC is paired with.
type Pair struct {
	ID   string `json:"id"`   // verified by its key
	Name string `json:"name"` // for people; unique here
	// Address is where the PC was reached last, host:port; empty if it always connected
	// to this PC.
	Address  string `json:"address,omitempty"`
	PairedAt int64  `json:"pairedAt"` // milliseconds since 1970
	// Confirmed is set once the other PC is known to have the pair too: at the end of the
	// pairing, or by a link.
	Confirmed bool `json:"confirmed"`
}

// PairList is the list of the pairs, network/pairs.json. Changes are durable when a method
// returns.
type PairList struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	pairs []Pair
}

const (
	bookVersion  = 1
	maxBookBytes = 1 << 20
	maxPairs     = 256
	// halfMade is how long an unconfirmed pair stays valid.
	halfMade = 24 * time.Hour
)

type bookFile struct {
	Version int    `json:"version"`
	Pairs   []Pair `json:"pairs"`
}

// OpenPairList reads the pairs of the folder. It fails for an unreadable list, which stays
// unchanged.
func OpenPairList(folder string, now func() time.Time) (*PairList, error) {
	b := &PairList{path: filepath.Join(folder, "pairs.json"), now: now}
	var file bookFile
	err := disk.ReadJSON(b.path, maxBookBytes, &file)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil && file.Version != bookVersion {
		return nil, bridge.Errorf(bridge.Unsupported, "network/pairs.json is of version %d: this Bridge knows %d", file.Version, bookVersion)
	}
	if err != nil {
		return nil, bridge.WithCause(bridge.Storage, err, "the paired PCs cannot be read, network/pairs.json is left as it is: "+disk.Reason(err))
	}
	b.pairs = file.Pairs
	return b, nil
}

// Pairs returns the paired PCs, sorted by name, without pairs unconfirmed for a day.
func (b *PairList) Pairs() []Pair {
	b.mu.Lock()
	defer b.mu.Unlock()
	pairs := slices.DeleteFunc(slices.Clone(b.pairs), b.isStale)
	slices.SortFunc(pairs, func(a, z Pair) int { return cmp.Compare(a.Name, z.Name) })
	return pairs
}

func (b *PairList) isStale(p Pair) bool {
	return !p.Confirmed && b.now().Sub(time.UnixMilli(p.PairedAt)) > halfMade
}

// ByID returns the pair with that id. It fails with Unauthorized if there is none.
func (b *PairList) ByID(id string) (Pair, error) {
	for _, pair := range b.Pairs() {
		if pair.ID == id {
			return pair, nil
		}
	}
	return Pair{}, bridge.Errorf(bridge.Unauthorized, "that PC is not paired with this one")
}

// ByName returns the pair with that name. It fails with NotFound if there is none.
func (b *PairList) ByName(name string) (Pair, error) {
	for _, pair := range b.Pairs() {
		if pair.Name == name {
			return pair, nil
		}
	}
	return Pair{}, bridge.Errorf(bridge.NotFound, "no PC named %q is paired with this one", name)
}

// Check fails with Conflict if another pair has the name: people and policies identify
// PCs by name. It fails with TooLarge if there are too many pairs.
func (b *PairList) Check(p Pair) error {
	if err := remote.CheckName(p.Name); err != nil {
		return err
	}
	pairs := b.Pairs()
	for _, other := range pairs {
		if other.Name == p.Name && other.ID != p.ID {
			return bridge.Errorf(bridge.Conflict, "another PC named %q is paired already: unlink it first, or give one of the two another network.name", p.Name)
		}
	}
	if len(pairs) >= maxPairs {
		return bridge.Errorf(bridge.TooLarge, "%d PCs are paired already, which is the most", maxPairs)
	}
	return nil
}

// Add adds a pair, or replaces the one with its id. It fails with Invalid for a bad name, with
// Conflict if another pair has it, and with TooLarge if the book is full. It fails with Storage
// if the book cannot be written.
func (b *PairList) Add(p Pair) error {
	if err := b.Check(p); err != nil {
		return err
	}
	return b.change(func(pairs []Pair) []Pair {
		pairs = slices.DeleteFunc(pairs, func(other Pair) bool { return other.ID == p.ID || b.isStale(other) })
		return append(pairs, p)
	})
}

// Update changes the stored data of a pair. It fails with Storage if the book cannot be
// written. An unknown pair is no error.
func (b *PairList) Update(id string, change func(*Pair)) error {
	return b.change(func(pairs []Pair) []Pair {
		for i := range pairs {
			if pairs[i].ID == id {
				change(&pairs[i])
			}
		}
		return pairs
	})
}

// Remove ends a pair: from then on its key is refused. It fails with Unauthorized if there is
// no such pair, and with Storage if the book cannot be written.
func (b *PairList) Remove(id string) error {
	if _, err := b.ByID(id); err != nil {
		return err
	}
	return b.change(func(pairs []Pair) []Pair {
		return slices.DeleteFunc(pairs, func(p Pair) bool { return p.ID == id })
	})
}

func (b *PairList) change(edit func([]Pair) []Pair) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	pairs := edit(slices.Clone(b.pairs))
	if slices.Equal(pairs, b.pairs) {
		return nil
	}
	if err := disk.MakeDir(filepath.Dir(b.path)); err != nil {
		return err
	}
	if err := disk.WriteJSON(b.path, bookFile{Version: bookVersion, Pairs: pairs}); err != nil {
		return bridge.WithCause(bridge.Storage, err, "the paired PCs could not be recorded: "+disk.Reason(err))
	}
	b.pairs = pairs
	return nil
}
