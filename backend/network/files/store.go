package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/disk"
)

// The contents of the folder of an incomplete transfer.
const (
	contentFolder = "files"    // becomes the folder in the inbox
	manifestFile  = "manifest" // once it has arrived
	progressFile  = "progress" // a line for each position up to which all is on the disk

	// usualMark is how many bytes are received before they are made durable and noted. A
	// crash loses at most that many. The end of a file is not noted.
	usualMark = 16 << 20
	// spreadEvery is how many bytes are received before the disk starts to write them.
	spreadEvery = 4 << 20

	maxProgressBytes = 1 << 20
)

// store is an incoming transfer on the disk.
type store struct {
	disk   disk.Files
	folder string
	offer  remote.FileOffer
	at     int64 // everything before is written
	marked int64 // everything before is durable

	encoded  []byte // the manifest, as far as received
	manifest remote.Manifest
	root     *os.Root // of the content; nil before the manifest is complete
	next     int      // the file after the present one

	file       *os.File // the present one; nil between two
	remaining  int64    // bytes that the present file lacks
	flushing   int64    // bytes written since the disk was last told to start
	sum        hash.Hash
	newFolders map[string]bool // folders of the content whose names may not be durable
}

// openStore resumes the data of a transfer, or starts it.
func openStore(files disk.Files, folder string, offer remote.FileOffer) (*store, error) {
	s := &store{disk: files, folder: folder, offer: offer, newFolders: map[string]bool{}}
	err := disk.MakeDir(folder)
	if err == nil {
		err = s.resume()
	}
	if errors.Is(err, errNothing) {
		err = s.startOver()
	}
	if err == nil {
		err = s.emptyFiles()
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *store) content() string { return filepath.Join(s.folder, contentFolder) }

// errNothing reports that there is nothing to resume.
var errNothing = errors.New("there is nothing to go on with")

// startOver starts from the beginning if the data cannot be resumed. The sender has all
// of it.
func (s *store) startOver() error {
	if err := s.close(); err != nil {
		return err
	}
	if err := os.RemoveAll(s.folder); err != nil {
		return err
	}
	*s = store{disk: s.disk, folder: s.folder, offer: s.offer, newFolders: map[string]bool{}}
	return disk.MakeDir(s.folder)
}

// resume opens the data on the disk. Data that was not noted as durable is discarded,
// because a crash may have left anything there.
func (s *store) resume() error {
	encoded, err := disk.ReadLimited(filepath.Join(s.folder, manifestFile), int64(s.offer.ManifestBytes))
	if err != nil {
		return errNothing
	}
	if s.manifest, err = remote.ParseManifest(encoded, s.offer); err != nil {
		return errNothing
	}
	s.encoded = encoded
	s.at = max(s.noted(), int64(len(encoded)))
	s.marked = s.at
	if err := s.openContent(); err != nil {
		return err
	}
	remaining := s.at - int64(len(encoded))
	for ; s.next < len(s.manifest.Files) && remaining >= s.manifest.Files[s.next].Bytes && remaining > 0; s.next++ {
		entry := s.manifest.Files[s.next]
		info, err := s.root.Lstat(filepath.FromSlash(entry.Path))
		if err != nil || !info.Mode().IsRegular() || info.Size() != entry.Bytes {
			return errNothing
		}
		remaining -= entry.Bytes
	}
	beyond := s.next
	if remaining > 0 {
		if err := s.reopen(s.manifest.Files[s.next], remaining); err != nil {
			return err
		}
		beyond++
		s.next++
	}
	for _, entry := range s.manifest.Files[beyond:] {
		if err := s.root.Remove(filepath.FromSlash(entry.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errNothing
		}
	}
	return nil
}

// noted returns the last position up to which all is on the disk. A line torn by a crash
// gives a lower position than the intended one.
func (s *store) noted() int64 {
	lines, err := disk.ReadLimited(filepath.Join(s.folder, progressFile), maxProgressBytes)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(lines)
	if len(fields) == 0 {
		return 0
	}
	at, err := strconv.ParseInt(string(fields[len(fields)-1]), 10, 64)
	if err != nil || at < 0 || at > s.offer.Total() {
		return 0
	}
	return at
}

// reopen continues in the middle of a file.
func (s *store) reopen(entry remote.FileEntry, have int64) error {
	file, err := s.root.OpenFile(filepath.FromSlash(entry.Path), os.O_RDWR, disk.PrivateFile)
	if err != nil {
		return errNothing
	}
	s.file, s.remaining, s.sum, s.flushing = file, entry.Bytes-have, sha256.New(), 0
	if err := file.Truncate(have); err != nil { // data beyond was never noted
		return err
	}
	if _, err := io.CopyN(s.sum, file, have); err != nil {
		return errNothing // it is shorter than noted
	}
	return nil
}

func (s *store) openContent() error {
	if err := disk.MakeDir(s.content()); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.content())
	s.root = root
	return err
}

// write writes the next bytes.
func (s *store) write(data []byte) error {
	if missing := s.offer.ManifestBytes - len(s.encoded); missing > 0 {
		n := min(missing, len(data))
		s.encoded = append(s.encoded, data[:n]...)
		s.at, data = s.at+int64(n), data[n:]
		if n < missing {
			return nil
		}
		if err := s.readManifest(); err != nil {
			return err
		}
	}
	for len(data) > 0 {
		if s.file == nil {
			if s.next == len(s.manifest.Files) {
				return bridge.Errorf(bridge.Invalid, "more came than was offered")
			}
			if err := s.create(); err != nil {
				return err
			}
		}
		n := min(s.remaining, int64(len(data)))
		if err := s.put(data[:n]); err != nil {
			return err
		}
		data = data[n:]
		if s.remaining == 0 {
			if err := s.complete(); err != nil {
				return err
			}
		}
	}
	return s.emptyFiles()
}

// emptyFiles creates the next files that are empty.
func (s *store) emptyFiles() error {
	for s.root != nil && s.file == nil && s.next < len(s.manifest.Files) && s.manifest.Files[s.next].Bytes == 0 {
		if err := s.create(); err != nil {
			return err
		}
		if err := s.complete(); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) readManifest() (err error) {
	if s.manifest, err = remote.ParseManifest(s.encoded, s.offer); err != nil {
		return err
	}
	if err := s.disk.WriteAtomic(filepath.Join(s.folder, manifestFile), s.encoded, disk.PrivateFile); err != nil {
		return err
	}
	s.marked = s.at
	return s.openContent()
}

func (s *store) before(step disk.Step, name string) error {
	if s.disk.Before == nil {
		return nil
	}
	return s.disk.Before(step, filepath.Join(s.content(), filepath.FromSlash(name)))
}

// create creates the next file. It fails with Invalid if the file exists: this system
// then maps two names of the manifest to one.
func (s *store) create() error {
	entry := s.manifest.Files[s.next]
	if err := s.before(disk.StepCreate, entry.Path); err != nil {
		return err
	}
	folder := path.Dir(entry.Path)
	if folder != "." {
		if err := s.root.MkdirAll(filepath.FromSlash(folder), disk.PrivateDir); err != nil {
			return err
		}
	}
	file, err := s.root.OpenFile(filepath.FromSlash(entry.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, disk.PrivateFile)
	if errors.Is(err, fs.ErrExist) {
		return bridge.Errorf(bridge.Invalid, "%q is the name of another file of the same transfer on this system", entry.Path)
	}
	if err != nil {
		return err
	}
	for ; folder != "."; folder = path.Dir(folder) {
		s.newFolders[folder] = true
	}
	s.newFolders["."] = true
	s.file, s.remaining, s.sum, s.flushing = file, entry.Bytes, sha256.New(), 0
	s.next++
	return nil
}

func (s *store) put(data []byte) error {
	name := s.manifest.Files[s.next-1].Path
	if err := s.before(disk.StepWrite, name); err != nil {
		return err
	}
	if _, err := s.file.Write(data); err != nil {
		return err
	}
	_, _ = s.sum.Write(data) // it never fails
	s.at, s.remaining, s.flushing = s.at+int64(len(data)), s.remaining-int64(len(data)), s.flushing+int64(len(data))
	if s.flushing < spreadEvery {
		return nil
	}
	s.flushing = 0
	return disk.StartSync(s.file)
}

// complete closes a fully written file. It fails with Conflict if the checksum is wrong.
func (s *store) complete() error {
	entry := s.manifest.Files[s.next-1]
	if hex.EncodeToString(s.sum.Sum(nil)) != entry.SHA256 {
		return bridge.Errorf(bridge.Conflict, "%q did not arrive as it was sent: its checksum is wrong", entry.Path)
	}
	if err := s.sync(entry.Path); err != nil {
		return err
	}
	err := s.file.Close()
	s.file = nil
	return err
}

func (s *store) sync(name string) error {
	if err := s.before(disk.StepSync, name); err != nil {
		return err
	}
	return s.file.Sync()
}

// mark makes all written data durable, and notes the position.
func (s *store) mark() error {
	if s.root == nil || s.marked == s.at {
		return nil // the manifest is sent again as a whole
	}
	if err := s.flush(); err != nil {
		return err
	}
	line := strconv.AppendInt(nil, s.at, 10)
	if err := s.disk.AppendSync(filepath.Join(s.folder, progressFile), line, disk.PrivateFile); err != nil {
		return err
	}
	s.marked = s.at
	return nil
}

// flush makes the data written so far durable, with its names.
func (s *store) flush() error {
	if s.file != nil {
		if err := s.sync(s.manifest.Files[s.next-1].Path); err != nil {
			return err
		}
	}
	for folder := range s.newFolders {
		if err := s.disk.SyncDir(filepath.Join(s.content(), filepath.FromSlash(folder))); err != nil {
			return err
		}
	}
	clear(s.newFolders)
	return nil
}

// finish makes the complete transfer ready to publish.
func (s *store) finish() error {
	if s.at != s.offer.Total() || s.file != nil || s.next != len(s.manifest.Files) {
		return bridge.Errorf(bridge.Internal, "the transfer is not whole")
	}
	for _, file := range s.manifest.Files { // also those created before a restart
		for folder := path.Dir(file.Path); folder != "."; folder = path.Dir(folder) {
			s.newFolders[folder] = true
		}
	}
	s.newFolders["."] = true
	if err := s.flush(); err != nil {
		return err
	}
	return s.close() // some systems cannot rename an open folder
}

// close closes the open files; data not noted as durable is written again.
func (s *store) close() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
		s.file = nil
	}
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
		s.root = nil
	}
	return err
}
