package simulation

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// disk is what a PC's database files are on: what was synced, and what was only written.
type disk struct {
	folder string

	mu     sync.Mutex // guards below
	files  map[string]*image
	dead   bool
	calls  int    // writes and syncs until it dies; negative for never
	failed func() // told once that it died
}

// image is one file.
type image struct {
	synced []byte
	later  []change // since the last sync, in their order
}

// change is a write, or with cut a new length.
type change struct {
	at   int64
	data []byte
	cut  bool
}

func (c change) apply(to []byte) []byte {
	end := int(c.at) + len(c.data)
	if c.cut && end <= len(to) {
		return to[:end]
	}
	if end > len(to) {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.at:], c.data)
	return to
}

// disks are those that SQLite's calls go to, by folder.
var disks sync.Map

func newDisk(folder string) *disk {
	d := &disk{folder: folder, files: map[string]*image{}, calls: -1}
	disks.Store(folder, d)
	return d
}

// put writes a file as if it had always been there.
func (d *disk) put(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(d.folder, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path] = &image{synced: slices.Clone(data)}
}

// dieAfter has the disk die at the n-th write or sync from now on; failed is told then.
func (d *disk) dieAfter(n int, failed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.failed = n, failed
}

// die has nothing written any more.
func (d *disk) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead, d.calls = true, -1
}

// isDead reports whether it died.
func (d *disk) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// counts one call and reports whether it still happens. The caller holds the lock.
func (d *disk) countsLocked() bool {
	if d.dead {
		return false
	}
	if d.calls >= 0 {
		if d.calls--; d.calls < 0 {
			d.dead = true
			d.failed()
			return false
		}
	}
	return true
}

// revive brings the files back to what a power cut leaves: all that was synced, and of what
// was only written whatever keep chooses. Nothing may have them open.
func (d *disk) revive(t testing.TB, keep *rand.Rand) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := make([]string, 0, len(d.files))
	for path := range d.files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		file := d.files[path]
		all := keep.IntN(3)
		for _, change := range file.later {
			if all == 0 || all == 1 && keep.IntN(2) == 0 {
				file.synced = change.apply(file.synced)
			}
		}
		file.later = nil
		if err := os.WriteFile(path, file.synced, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bridge.db-shm"} {
		if err := os.Remove(filepath.Join(d.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	d.dead, d.calls = false, -1
}

func (d *disk) change(path string, item change) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.countsLocked() {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	file := d.files[path]
	if file == nil {
		file = &image{}
		d.files[path] = file
	}
	file.later = append(file.later, item)
	return sqlite3.SQLITE_OK
}

func (d *disk) sync(path string) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.countsLocked() {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	if file := d.files[path]; file != nil {
		for _, change := range file.later {
			file.synced = change.apply(file.synced)
		}
		file.later = nil
	}
	return sqlite3.SQLITE_OK
}

func (d *disk) remove(path string) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return sqlite3.SQLITE_IOERR_DELETE
	}
	delete(d.files, path)
	return sqlite3.SQLITE_OK
}

// opened are SQLite's open files on disks, by their address.
var opened sync.Map

type openFile struct {
	disk *disk
	path string
	real *sqlite3.Tsqlite3_io_methods
}

// Functions of SQLite, as its translation to Go has them.
type (
	openFunc     = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, path uintptr, syncFolder int32) int32
	writeFunc    = func(tls *libc.TLS, file, data uintptr, size int32, at int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
)

// address is that of a Go function, for SQLite.
func address[F any](f *F) uintptr { return *(*uintptr)(unsafe.Pointer(f)) }

// function is what lies at an address of SQLite.
func function[F any](at uintptr) F { return *(*F)(unsafe.Pointer(&at)) }

// memory is what lies at an address of SQLite's own memory.
func memory[T any](at uintptr) *T { return *(**T)(unsafe.Pointer(&at)) }

// layer stands between SQLite and its usual access to files. It lives as long as the
// process, and passes on what is on no disk of a simulation.
var layer struct {
	open   openFunc
	remove deleteFunc

	mu      sync.Mutex
	methods map[uintptr]*sqlite3.Tsqlite3_io_methods // by those that they stand for

	onOpen     openFunc
	onDelete   deleteFunc
	onWrite    writeFunc
	onTruncate truncateFunc
	onSync     syncFunc
	onClose    closeFunc
}

// layDisks puts the layer in. It is called once, before anything opens a database.
func layDisks() {
	tls := libc.NewTLS()
	defer tls.Close()
	usual := memory[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	layer.methods = map[uintptr]*sqlite3.Tsqlite3_io_methods{}
	layer.open, layer.remove = function[openFunc](usual.FxOpen), function[deleteFunc](usual.FxDelete)
	layer.onOpen, layer.onDelete = openOnDisk, deleteOnDisk
	layer.onWrite, layer.onTruncate, layer.onSync, layer.onClose = writeOnDisk, truncateOnDisk, syncOnDisk, closeOnDisk
	usual.FxOpen, usual.FxDelete = address(&layer.onOpen), address(&layer.onDelete)
}

func diskOf(path string) *disk {
	d, _ := disks.Load(filepath.Dir(path))
	of, _ := d.(*disk)
	return of
}

func openOnDisk(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32 {
	name := ""
	if path != 0 {
		name = libc.GoString(path)
	}
	code := layer.open(tls, vfs, path, file, flags, out)
	d := diskOf(name)
	if d == nil || code != sqlite3.SQLITE_OK {
		return code
	}
	handle := memory[sqlite3.Tsqlite3_file](file)
	opened.Store(file, &openFile{d, strings.Clone(name), memory[sqlite3.Tsqlite3_io_methods](handle.FpMethods)})
	handle.FpMethods = methodsFor(handle.FpMethods)
	return code
}

// methodsFor are methods that go through the layer, in memory that stays.
func methodsFor(usual uintptr) uintptr {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	own := layer.methods[usual]
	if own == nil {
		own = new(sqlite3.Tsqlite3_io_methods)
		*own = *memory[sqlite3.Tsqlite3_io_methods](usual)
		own.FxWrite, own.FxTruncate = address(&layer.onWrite), address(&layer.onTruncate)
		own.FxSync, own.FxClose = address(&layer.onSync), address(&layer.onClose)
		layer.methods[usual] = own
	}
	return uintptr(unsafe.Pointer(own))
}

func fileAt(at uintptr) *openFile {
	file, _ := opened.Load(at)
	return file.(*openFile)
}

func writeOnDisk(tls *libc.TLS, file, data uintptr, size int32, at int64) int32 {
	f := fileAt(file)
	bytes := slices.Clone(unsafe.Slice(memory[byte](data), size))
	if code := f.disk.change(f.path, change{at: at, data: bytes}); code != sqlite3.SQLITE_OK {
		return code
	}
	return function[writeFunc](f.real.FxWrite)(tls, file, data, size, at)
}

func truncateOnDisk(tls *libc.TLS, file uintptr, size int64) int32 {
	f := fileAt(file)
	if code := f.disk.change(f.path, change{at: size, cut: true}); code != sqlite3.SQLITE_OK {
		return code
	}
	return function[truncateFunc](f.real.FxTruncate)(tls, file, size)
}

func syncOnDisk(_ *libc.TLS, file uintptr, _ int32) int32 {
	f := fileAt(file)
	return f.disk.sync(f.path)
}

func closeOnDisk(tls *libc.TLS, file uintptr) int32 {
	f := fileAt(file)
	opened.Delete(file)
	return function[closeFunc](f.real.FxClose)(tls, file)
}

func deleteOnDisk(tls *libc.TLS, vfs, path uintptr, syncFolder int32) int32 {
	name := libc.GoString(path)
	if d := diskOf(name); d != nil {
		if code := d.remove(name); code != sqlite3.SQLITE_OK {
			return code
		}
	}
	return layer.remove(tls, vfs, path, syncFolder)
}
