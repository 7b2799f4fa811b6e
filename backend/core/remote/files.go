package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"bridge/backend/core/bridge"
)

// Files between paired PCs (RMT-20). A transfer is one byte stream: the manifest, then
// the content of each file in order. It is sent in chunks, and continues at the
// receiver's offset.
const (
	// FilesCapability announces in a hello that a PC accepts files.
	FilesCapability = "file-stream-v1"
	// FilesFrameType is the type of the frames with files.
	FilesFrameType = "file-stream"

	// ChunkBytes is the size of every chunk of a transfer but the last one.
	ChunkBytes = 256 << 10
	// ChunkWindow is how many chunks may be unacknowledged, and MaxChunkWindow how many
	// on a faster connection.
	ChunkWindow    = 8
	MaxChunkWindow = 64

	maxFilePayloadBytes = 8 << 10
	maxManifestBytes    = 8 << 20
	maxPathBytes        = 1_000
	maxPathDepth        = 32
	maxNameBytes        = 255
)

// Files is network.files of config.json: who may send files here, and how much.
type Files struct {
	AllowPeers []string `json:"allowPeers,omitempty"` // names of paired PCs
	MaxBytes   int64    `json:"maxBytes,omitempty"`   // of one transfer; 0 is 8 GiB
	MaxEntries int      `json:"maxEntries,omitempty"` // files in one transfer; 0 is 4,096
	AtOnce     int      `json:"atOnce,omitempty"`     // incoming transfers at a time; 0 is 4
}

const (
	usualTransferBytes   = 8 << 30
	usualTransferEntries = 4_096
	usualTransfersAtOnce = 4
)

// WithDefaults returns f with defaults for missing values.
func (f Files) WithDefaults() Files {
	if f.MaxBytes == 0 {
		f.MaxBytes = usualTransferBytes
	}
	if f.MaxEntries == 0 {
		f.MaxEntries = usualTransferEntries
	}
	if f.AtOnce == 0 {
		f.AtOnce = usualTransfersAtOnce
	}
	return f
}

// Check fails with Invalid for the first value that is not possible.
func (f Files) Check() error {
	for _, limit := range []struct {
		member string
		value  int64
	}{{"maxBytes", f.MaxBytes}, {"maxEntries", int64(f.MaxEntries)}, {"atOnce", int64(f.AtOnce)}} {
		if limit.value < 0 {
			return bridge.Errorf(bridge.Invalid, "network.files.%s must not be negative", limit.member)
		}
	}
	if f.MaxEntries > usualTransferEntries {
		return bridge.Errorf(bridge.Invalid, "network.files.maxEntries can be %d at most", usualTransferEntries)
	}
	return nil
}

// AllowFiles fails with Denied unless that PC may send files here. It is called for
// every offer, and again before anything is shown.
func (p Policy) AllowFiles(name string) error {
	switch {
	case !p.Enabled:
		return bridge.Errorf(bridge.Denied, "links to other PCs are off here (network.enabled)")
	case !slices.Contains(p.Files.AllowPeers, name):
		return bridge.Errorf(bridge.Denied, "files from %s are not allowed here (network.files.allowPeers)", name)
	}
	return nil
}

// AllowOffer fails with TooLarge if a transfer exceeds the owner's limits.
func (f Files) AllowOffer(offer FileOffer) error {
	f = f.WithDefaults()
	switch {
	case offer.Entries > f.MaxEntries:
		return bridge.Errorf(bridge.TooLarge, "%s are too many: at most %d are taken at a time (network.files.maxEntries)", bridge.Counted(offer.Entries, "file"), f.MaxEntries)
	case offer.Bytes > f.MaxBytes:
		return bridge.Errorf(bridge.TooLarge, "%s are too much: at most %s are taken at a time (network.files.maxBytes)", bridge.Size(offer.Bytes), bridge.Size(f.MaxBytes))
	}
	return nil
}

// FileEntry is one file of a manifest.
type FileEntry struct {
	Path   string `json:"path"` // relative, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of its content, in hex
}

// Manifest lists the files of a transfer. The offer has the manifest's checksum, which
// covers every name, size and checksum.
type Manifest struct {
	Files []FileEntry `json:"files"`
}

// Encode validates the manifest and returns the bytes to send. It fails with TooLarge
// if the names need too many bytes, and with Invalid for an unsuitable entry.
func (m Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(m)
	if err == nil && len(data) > maxManifestBytes {
		err = bridge.Errorf(bridge.TooLarge, "the names of the files need %s: at most %d fit", bridge.Counted(len(data), "byte"), maxManifestBytes)
	}
	return data, err
}

// Offer returns the offer that precedes a transfer.
func (m Manifest) Offer(encoded []byte) FileOffer {
	sum := sha256.Sum256(encoded)
	offer := FileOffer{Entries: len(m.Files), ManifestBytes: len(encoded), SHA256: hex.EncodeToString(sum[:])}
	for _, file := range m.Files {
		offer.Bytes += file.Bytes
	}
	return offer
}

// ParseManifest decodes a manifest. It fails if the manifest does not match the offer.
func ParseManifest(data []byte, offer FileOffer) (Manifest, error) {
	var m Manifest
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != offer.SHA256 {
		return m, bridge.Errorf(bridge.Conflict, "the list of files did not arrive as it was sent: its checksum is wrong")
	}
	if err := bridge.DecodeStrict(data, maxManifestBytes, &m); err != nil {
		return m, err
	}
	if err := m.check(); err != nil {
		return m, err
	}
	if fileOffer := m.Offer(data); fileOffer != offer {
		return m, bridge.Errorf(bridge.Invalid, "the list of files is not what was offered: %s of %s instead of %d of %s", bridge.Counted(fileOffer.Entries, "file"), bridge.Size(fileOffer.Bytes), offer.Entries, bridge.Size(offer.Bytes))
	}
	return m, nil
}

func (m Manifest) check() error {
	if len(m.Files) == 0 {
		return bridge.Errorf(bridge.Invalid, "there is no file in it")
	}
	if len(m.Files) > usualTransferEntries {
		return bridge.Errorf(bridge.TooLarge, "%s are too many: at most %d fit", bridge.Counted(len(m.Files), "file"), usualTransferEntries)
	}
	seen := map[string]string{} // each name there, a file or a folder, in its first spelling
	for _, file := range m.Files {
		if err := CheckPath(file.Path); err != nil {
			return err
		}
		if file.Bytes < 0 || file.Bytes > usualTotal || !isSum(file.SHA256) {
			return bridge.Errorf(bridge.Invalid, "%q has no proper size and checksum", file.Path)
		}
		if err := take(seen, file.Path); err != nil {
			return err
		}
	}
	return nil
}

// usualTotal keeps the sum over all files from overflowing.
const usualTotal = 1 << 50

// take records a file's path and its parent folders. It refuses a name that collides on
// a file system that ignores letter case or Unicode forms.
func take(seen map[string]string, path string) error {
	for i, r := range path {
		if r != '/' {
			continue
		}
		folder := path[:i+1]
		if existing, found := seen[fold(path[:i])]; found && existing != folder {
			return collide(path, existing)
		}
		seen[fold(path[:i])] = folder
	}
	if existing, found := seen[fold(path)]; found {
		return collide(path, existing)
	}
	seen[fold(path)] = path
	return nil
}

func collide(path, existing string) error {
	if path == existing {
		return bridge.Errorf(bridge.Invalid, "%q is there twice: what is sent together needs a name of its own each", path)
	}
	return bridge.Errorf(bridge.Invalid, "%q and %q are one name on some systems", path, strings.TrimSuffix(existing, "/"))
}

// fold returns one form for all names that some file system treats as equal.
func fold(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFKC.String(name))))
}

func isSum(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// reserved are the names of devices on Windows, with any extension.
var reserved = []string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"}

// CheckPath fails with Invalid for a path that is not relative or leaves its folder. It
// also refuses a path that is invalid or different on another system.
func CheckPath(path string) error {
	parts := strings.Split(path, "/")
	switch {
	case path == "" || !utf8.ValidString(path) || len(path) > maxPathBytes || len(parts) > maxPathDepth:
		return bridge.Errorf(bridge.Invalid, "a file's path has 1 to %d bytes of valid text and at most %d folders", maxPathBytes, maxPathDepth-1)
	case strings.ContainsFunc(path, isOdd):
		return bridge.Errorf(bridge.Invalid, "%q has signs that not every system has in names", path)
	}
	for _, part := range parts {
		if err := checkPart(part); err != nil {
			return bridge.Errorf(bridge.Invalid, "%q cannot be sent: %s", path, err.Error())
		}
	}
	return nil
}

func checkPart(part string) error {
	stem, _, _ := strings.Cut(strings.ToUpper(part), ".")
	stem = strings.TrimRight(stem, " ")
	digits, isPort := strings.CutPrefix(stem, "COM")
	if !isPort {
		digits, isPort = strings.CutPrefix(stem, "LPT")
	}
	switch {
	case part == "" || part == "." || part == "..":
		return bridge.Errorf(bridge.Invalid, "it is no path below a folder")
	case len(part) > maxNameBytes:
		return bridge.Errorf(bridge.Invalid, "one of its names has more than %d bytes", maxNameBytes)
	case strings.HasSuffix(part, " ") || strings.HasSuffix(part, "."):
		return bridge.Errorf(bridge.Invalid, "Windows has no name that ends with a space or a dot")
	case slices.Contains(reserved, stem), isPort && utf8.RuneCountInString(digits) == 1 && strings.ContainsAny(digits, "0123456789¹²³"):
		return bridge.Errorf(bridge.Invalid, "%s is a device on Windows", stem)
	}
	return nil
}

// isOdd reports a character that no portable name has. It has a meaning on Windows, is
// invisible, or changes the text direction, so that a name imitates another.
func isOdd(r rune) bool {
	return strings.ContainsRune(`\<>:"|?*`, r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError || r == '\uFEFF'
}

// FileOffer describes a transfer.
type FileOffer struct {
	Entries       int    `json:"entries"`
	Bytes         int64  `json:"bytes"` // of all files
	ManifestBytes int    `json:"manifestBytes"`
	SHA256        string `json:"sha256"` // of the manifest
}

// Total returns the size of the transfer in bytes.
func (o FileOffer) Total() int64 { return int64(o.ManifestBytes) + o.Bytes }

// FileKind is the kind of a transfer's frame.
type FileKind string

// The frames. A sender offers, and repeats the offer after each interruption. The
// receiver accepts from the offset that it has on disk, or refuses, or reports that it
// is done. Either side can refuse at any time, which ends the transfer.
const (
	OfferFiles  FileKind = "offer"
	AcceptFiles FileKind = "accept" // At: the offset to send from
	FileChunk   FileKind = "chunk"  // At: its offset; the frame's body is the chunk
	FileAck     FileKind = "ack"    // At: all data before it has arrived
	FilesDone   FileKind = "done"   // all data has arrived and is verified
	RefuseFiles FileKind = "refuse"
)

// FileFrame is the payload of a file-stream frame.
type FileFrame struct {
	Kind  FileKind          `json:"kind"`
	ID    string            `json:"id"` // of the transfer, a UUID
	At    bridge.UnixMillis `json:"at,omitempty"`
	Offer *FileOffer        `json:"offer,omitempty"`
	Error *bridge.Error     `json:"error,omitempty"`
}

// Encode returns the payload. It fails if the frame cannot be encoded as JSON.
func (f FileFrame) Encode() ([]byte, error) {
	if f.Error != nil {
		f.Error = &bridge.Error{Code: f.Error.Code, Message: cut(f.Error.Message)}
	}
	return json.Marshal(f)
}

// ParseFileFrame decodes a file-stream frame's payload; body is the size of its body in
// bytes. It ignores members of a later release. It fails with Invalid for an unsuitable
// id or member, and with TooLarge beyond the frame limit.
func ParseFileFrame(payload []byte, body int) (FileFrame, error) {
	var f FileFrame
	if err := bridge.DecodeAdditive(payload, maxFilePayloadBytes, &f); err != nil {
		return FileFrame{}, err
	}
	if id, err := uuid.Parse(f.ID); err != nil || id.String() != f.ID { // it names a folder
		return FileFrame{}, bridge.Errorf(bridge.Invalid, "a transfer's id is a UUID")
	}
	var isValid bool
	switch f.Kind {
	case OfferFiles:
		isValid = f.Offer != nil && f.Offer.isProper()
	case RefuseFiles:
		isValid = f.Error != nil
	case FileChunk:
		isValid = body > 0 && body <= ChunkBytes
	case AcceptFiles, FileAck, FilesDone:
		isValid = true
	}
	if !isValid || f.At < 0 || body > 0 && f.Kind != FileChunk {
		return FileFrame{}, bridge.Errorf(bridge.Invalid, "a %q of a transfer is not as it has to be", f.Kind)
	}
	if f.Error != nil {
		f.Error = &bridge.Error{Code: f.Error.Code, Message: cut(bridge.VisibleLine(f.Error.Message))}
	}
	return f, nil
}

func (o FileOffer) isProper() bool {
	return o.Entries > 0 && o.Bytes >= 0 && o.Bytes <= usualTotal && o.ManifestBytes > 0 && o.ManifestBytes <= maxManifestBytes && isSum(o.SHA256)
}
