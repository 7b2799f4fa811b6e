//go:build amd64 || arm64

package faults

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// durable follows what of a store is on the disk and not only in memory: what a
// power cut would leave. A page that was written counts once a sync came after
// it; a sync that fails loses the pages that it was for, as Linux loses them: a
// later sync that succeeds does not bring them.
type durable struct {
	mu    sync.Mutex
	files map[string]*image
}

// image is one file as it is on the disk.
type image struct {
	bytes []byte
	dirty map[int64]bool // pages that wait for a sync
}

const pageBytes = 4096

// follow begins with the files of the store as they are.
func follow(t *testing.T, home string) *durable {
	t.Helper()
	d := &durable{files: map[string]*image{}}
	for _, name := range []string{"bridge.db", "bridge.db-wal"} {
		bytes, err := os.ReadFile(filepath.Join(home, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		d.files[filepath.Join(home, name)] = &image{bytes: bytes, dirty: map[int64]bool{}}
	}
	return d
}

// saw takes a call into account, with what becomes of it.
func (d *durable) saw(c call, v verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := d.files[c.path]
	if file == nil {
		return
	}
	switch {
	case c.isSync():
		file.sync(c.path, v.refused == 0)
	case v.refused != 0:
	case c.number == unix.SYS_FTRUNCATE:
		file.truncate(c.size)
	default:
		for page := c.offset / pageBytes; page*pageBytes < c.offset+c.size; page++ {
			file.dirty[page] = true
		}
	}
}

func (f *image) sync(path string, succeeds bool) {
	now, err := os.ReadFile(path)
	for page := range f.dirty {
		from, to := page*pageBytes, min((page+1)*pageBytes, int64(len(now)))
		if !succeeds || err != nil || from >= to {
			continue
		}
		if missing := to - int64(len(f.bytes)); missing > 0 {
			f.bytes = append(f.bytes, make([]byte, missing)...)
		}
		copy(f.bytes[from:to], now[from:to])
	}
	clear(f.dirty)
}

func (f *image) truncate(size int64) {
	f.bytes = f.bytes[:min(size, int64(len(f.bytes)))]
	for page := range f.dirty {
		if page*pageBytes >= size {
			delete(f.dirty, page)
		}
	}
}

// cutPower returns a copy of the home as a power cut leaves it at worst: nothing that waits
// for a sync is on the disk.
func (d *durable) cutPower(t *testing.T, home string) string {
	t.Helper()
	return d.copyAfterCut(t, home, func(file *image, _ string) []byte { return file.bytes })
}

// tear returns a copy of the home as another power cut may leave it: of each page that waits
// for a sync, all sectors are on the disk, the first ones, or none. random chooses.
func (d *durable) tear(t *testing.T, home string, random *rand.Rand) string {
	t.Helper()
	return d.copyAfterCut(t, home, func(file *image, path string) []byte {
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return file.torn(now, random)
	})
}

// copyAfterCut copies the home, with what is left of each followed file.
func (d *durable) copyAfterCut(t *testing.T, home string, left func(file *image, path string) []byte) string {
	t.Helper()
	after := copyOf(t, home)
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, file := range d.files {
		name := strings.TrimPrefix(path, home)
		if err := os.WriteFile(filepath.Join(after, name), left(file, path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(after, "bridge.db-shm")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return after
}

const (
	sectorBytes    = 512
	sectorsOfAPage = pageBytes / sectorBytes
)

// torn returns the bytes of the file, with some sectors of the pages that wait for a sync.
func (f *image) torn(now []byte, random *rand.Rand) []byte {
	bytes := slices.Clone(f.bytes)
	for _, page := range slices.Sorted(maps.Keys(f.dirty)) {
		sectors := random.IntN(2*sectorsOfAPage+1) - sectorsOfAPage/2 // whole pages and none are likely
		from := page * pageBytes
		to := min(from+int64(max(0, min(sectors, sectorsOfAPage)))*sectorBytes, int64(len(now)))
		if from >= to {
			continue
		}
		if missing := to - int64(len(bytes)); missing > 0 {
			bytes = append(bytes, make([]byte, missing)...)
		}
		copy(bytes[from:to], now[from:to])
	}
	return bytes
}
