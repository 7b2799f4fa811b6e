package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/disk"
)

// source is a file to send: its path here, and its path there.
type source struct {
	remote.FileEntry
	From string `json:"from"` // absolute
}

// maxGathered limits the files that are listed before a receiver is asked whether it
// accepts them.
const maxGathered = 4_096

// gather returns the files at and below paths. It fails for links and for anything but
// files and folders. Folders without files are not sent.
func gather(paths []string) ([]source, error) {
	if len(paths) == 0 {
		return nil, bridge.Errorf(bridge.Invalid, "name a file or a folder to send")
	}
	var sources []source
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return nil, bridge.Errorf(bridge.Invalid, "%q is no absolute path", path)
		}
		path = filepath.Clean(path)
		name := filepath.Base(path)
		err := filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
			if err != nil {
				return bridge.Errorf(bridge.NotFound, "%s cannot be sent: %s", at, disk.Reason(err))
			}
			switch {
			case entry.Type()&fs.ModeSymlink != 0:
				return bridge.Errorf(bridge.Invalid, "%s is a link: send what it leads to by its own name", at)
			case entry.IsDir():
				return nil
			case !entry.Type().IsRegular():
				return bridge.Errorf(bridge.Invalid, "%s is neither a file nor a folder", at)
			case len(sources) == maxGathered:
				return bridge.Errorf(bridge.TooLarge, "these are more than %d files: send them in parts", maxGathered)
			}
			source, err := sourceAt(path, name, at, entry)
			sources = append(sources, source)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(sources) == 0 {
		return nil, bridge.Errorf(bridge.Invalid, "there is no file in what was named")
	}
	return sources, checkNames(sources)
}

func sourceAt(top, name, at string, entry fs.DirEntry) (source, error) {
	info, err := entry.Info()
	if err != nil {
		return source{}, bridge.Errorf(bridge.NotFound, "%s cannot be sent: %s", at, disk.Reason(err))
	}
	below, err := filepath.Rel(top, at)
	if err != nil {
		return source{}, err
	}
	path := name
	if below != "." {
		path += "/" + filepath.ToSlash(below)
	}
	return source{From: at, FileEntry: remote.FileEntry{Path: path, Bytes: info.Size()}}, nil
}

// checkNames fails for names that the receiver would refuse, before any file is read.
func checkNames(sources []source) error {
	manifest := manifestOf(sources)
	for i := range manifest.Files {
		manifest.Files[i].SHA256 = strings.Repeat("0", 2*sha256.Size)
	}
	_, err := manifest.Encode()
	return err
}

func manifestOf(sources []source) (m remote.Manifest) {
	for _, source := range sources {
		m.Files = append(m.Files, source.FileEntry)
	}
	return m
}

// weigh computes the checksums of the files. It calls done with the bytes read so far.
func weigh(ctx context.Context, sources []source, done func(int64)) ([]source, error) {
	sources = slices.Clone(sources)
	var all int64
	for i := range sources {
		source := &sources[i]
		file, err := openSource(*source)
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		size, err := io.Copy(sum, &counted{ctx: ctx, from: io.LimitReader(file, source.Bytes+1), done: func(n int) { all += int64(n); done(all) }})
		err = errors.Join(err, file.Close())
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, bridge.Errorf(bridge.Storage, "%s cannot be read: %s", source.From, disk.Reason(err))
		case size != source.Bytes:
			return nil, errChanged(source.From)
		}
		source.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return sources, nil
}

// counted reports how much was read, and stops with its context.
type counted struct {
	ctx  context.Context //nolint:containedctx // of one copy
	from io.Reader
	done func(int)
}

// Read reads from the source and counts the bytes. It fails if the context has ended, and as
// the source does.
func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(p)
	c.done(n)
	return n, err
}

func errChanged(path string) error {
	return bridge.Errorf(bridge.Conflict, "%s changed while it was sent: send it again", path)
}

// openSource opens the file, and fails with Conflict if another file took its name meanwhile.
func openSource(item source) (*os.File, error) {
	info, err := os.Lstat(item.From)
	if err == nil && (!info.Mode().IsRegular() || info.Size() != item.Bytes) {
		return nil, errChanged(item.From)
	}
	if err != nil {
		return nil, bridge.Errorf(bridge.Conflict, "%s cannot be sent any more: %s", item.From, disk.Reason(err))
	}
	file, err := os.Open(item.From)
	if err != nil {
		return nil, bridge.Errorf(bridge.Storage, "%s cannot be read: %s", item.From, disk.Reason(err))
	}
	opened, err := file.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(errChanged(item.From), file.Close())
	}
	return file, nil
}

// content is the byte stream of a transfer, readable from any position.
type content struct {
	manifest []byte
	sources  []source
	at       int64 // the position in the stream

	file      *os.File // the file being read; nil before
	next      int      // the next source
	remaining int64    // bytes left in file
	sum       hash.Hash
}

// openContent opens the stream at a position. It also reads the part of the file before
// that position, so that any change of the file is detected.
func openContent(manifest []byte, sources []source, from int64) (*content, error) {
	c := &content{manifest: manifest, sources: sources}
	skip := from - int64(len(manifest))
	if skip < 0 {
		c.at = from
		return c, nil
	}
	for c.next < len(sources) && skip >= sources[c.next].Bytes && skip > 0 {
		skip -= sources[c.next].Bytes
		c.next++
	}
	c.at = from - skip
	if skip == 0 {
		return c, nil
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	_, err := io.CopyN(io.Discard, c, skip)
	return c, err
}

func (c *content) open() (err error) {
	source := c.sources[c.next]
	if c.file, err = openSource(source); err != nil {
		c.file = nil
		return err
	}
	c.next++
	c.remaining, c.sum = source.Bytes, sha256.New()
	return nil
}

// Read reads the next bytes. It returns io.EOF after the last file. It fails with Conflict if a
// file does not match its checksum, and with Storage if a file cannot be read.
func (c *content) Read(p []byte) (n int, err error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case c.at < int64(len(c.manifest)):
		n = copy(p, c.manifest[c.at:])
		c.at += int64(n)
		return n, nil
	case c.file == nil && c.next == len(c.sources):
		return 0, io.EOF
	case c.file == nil:
		if err := c.open(); err != nil {
			return 0, err
		}
	}
	if c.remaining > 0 {
		n, err = c.file.Read(p[:min(int64(len(p)), c.remaining)])
		_, _ = c.sum.Write(p[:n]) // it never fails
		c.at, c.remaining = c.at+int64(n), c.remaining-int64(n)
	}
	if c.remaining > 0 && err == nil {
		return n, nil
	}
	source := c.sources[c.next-1]
	if c.remaining > 0 || hex.EncodeToString(c.sum.Sum(nil)) != source.SHA256 {
		if err == nil || errors.Is(err, io.EOF) {
			err = errChanged(source.From)
		}
		return 0, err // without these, the receiver never completes a file that differs from the promise
	}
	return n, c.close()
}

func (c *content) close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}
