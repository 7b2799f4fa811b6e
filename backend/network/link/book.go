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

// Pair is another PC that this one knows.
type Pair struct {
	ID   string `json:"id"`   // what its key proves
	Name string `json:"name"` // what people call it; unique here
	// Address is where it was reached last, host:port; empty where it always came by
	// itself.
	Address  string `json:"address,omitempty"`
	PairedAt int64  `json:"pairedAt"` // milliseconds since 1970
	// Confirmed says that it is known to know this PC, too: it said so at the end of
	// the pairing, or a link was up.
	Confirmed bool `json:"confirmed"`
}

// Book is the list of the pairs, network/pairs.json. What it was told is durable when
// it returns.
type Book struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	pairs []Pair
}

const (
	bookVersion  = 1
	maxBookBytes = 1 << 20
	maxPairs     = 256
	// halfMade is how long a pair stays of which the other side may know nothing.
	halfMade = 24 * time.Hour
)

type bookFile struct {
	Version int    `json:"version"`
	Pairs   []Pair `json:"pairs"`
}

// OpenBook reads the pairs that the folder has. A list that cannot be read is an
// error and is left as it is.
func OpenBook(folder string, now func() time.Time) (*Book, error) {
	b := &Book{path: filepath.Join(folder, "pairs.json"), now: now}
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

// Pairs lists the paired PCs by name. One that is half-made for a day counts no more.
func (b *Book) Pairs() []Pair {
	b.mu.Lock()
	defer b.mu.Unlock()
	pairs := slices.DeleteFunc(slices.Clone(b.pairs), b.isStale)
	slices.SortFunc(pairs, func(a, z Pair) int { return cmp.Compare(a.Name, z.Name) })
	return pairs
}

func (b *Book) isStale(p Pair) bool {
	return !p.Confirmed && b.now().Sub(time.UnixMilli(p.PairedAt)) > halfMade
}

// ByID finds a pair by what its key proves.
func (b *Book) ByID(id string) (Pair, error) {
	for _, pair := range b.Pairs() {
		if pair.ID == id {
			return pair, nil
		}
	}
	return Pair{}, bridge.Errorf(bridge.Unauthorized, "that PC is not paired with this one")
}

// ByName finds a pair by its name.
func (b *Book) ByName(name string) (Pair, error) {
	for _, pair := range b.Pairs() {
		if pair.Name == name {
			return pair, nil
		}
	}
	return Pair{}, bridge.Errorf(bridge.NotFound, "no PC named %q is paired with this one", name)
}

// Check refuses a pair whose name another one has: names are how people and policies
// tell them apart.
func (b *Book) Check(p Pair) error {
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

// Add takes a pair in, or again what is new of one.
func (b *Book) Add(p Pair) error {
	if err := b.Check(p); err != nil {
		return err
	}
	return b.change(func(pairs []Pair) []Pair {
		pairs = slices.DeleteFunc(pairs, func(other Pair) bool { return other.ID == p.ID || b.isStale(other) })
		return append(pairs, p)
	})
}

// Update changes what is known of a pair.
func (b *Book) Update(id string, change func(*Pair)) error {
	return b.change(func(pairs []Pair) []Pair {
		for i := range pairs {
			if pairs[i].ID == id {
				change(&pairs[i])
			}
		}
		return pairs
	})
}

// Remove ends a pair: from then on its key opens nothing.
func (b *Book) Remove(id string) error {
	if _, err := b.ByID(id); err != nil {
		return err
	}
	return b.change(func(pairs []Pair) []Pair {
		return slices.DeleteFunc(pairs, func(p Pair) bool { return p.ID == id })
	})
}

func (b *Book) change(edit func([]Pair) []Pair) error {
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
