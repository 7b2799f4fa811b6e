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

// Files between paired PCs (RMT-20). A transfer is one run of bytes: the manifest,
// then the content of each file in the manifest's order. It is sent in chunks, and
// goes on where its receiver says.
const (
	// FilesCapability says in a hello that a PC takes files.
	FilesCapability = "file-stream-v1"
	// FilesFrameType is the type of the frames that carry them.
	FilesFrameType = "file-stream"

	// ChunkBytes is the size of every chunk of a transfer but the last one.
	ChunkBytes = 256 << 10
	// ChunkWindow is how many chunks are under way before the first is acknowledged,
	// and MaxChunkWindow how many on a way that takes more at once.
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
	AtOnce     int      `json:"atOnce,omitempty"`     // transfers that come in at a time; 0 is 4
}

const (
	usualTransferBytes   = 8 << 30
	usualTransferEntries = 4_096
	usualTransfersAtOnce = 4
)

// WithDefaults fills in what the owner left out.
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

// Check names the first value that cannot be meant.
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

// AllowFiles decides whether that PC may send files here. It is asked on every offer,
// and again before anything is shown.
func (p Policy) AllowFiles(name string) error {
	switch {
	case !p.Enabled:
		return bridge.Errorf(bridge.Denied, "links to other PCs are off here (network.enabled)")
	case !slices.Contains(p.Files.AllowPeers, name):
		return bridge.Errorf(bridge.Denied, "files from %s are not allowed here (network.files.allowPeers)", name)
	}
	return nil
}

// AllowOffer decides whether a transfer is one that the owner's limits have room for.
func (f Files) AllowOffer(offer FileOffer) error {
	f = f.WithDefaults()
	switch {
	case offer.Entries > f.MaxEntries:
		return bridge.Errorf(bridge.TooLarge, "%d files are too many: at most %d are taken at a time (network.files.maxEntries)", offer.Entries, f.MaxEntries)
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

// Manifest is what a transfer holds. Its own checksum, which the offer tells, stands for
// the whole: it covers every name, size and checksum.
type Manifest struct {
	Files []FileEntry `json:"files"`
}

// Encode checks the manifest and makes the bytes that are sent.
func (m Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(m)
	if err == nil && len(data) > maxManifestBytes {
		err = bridge.Errorf(bridge.TooLarge, "the names of the files need %d bytes: at most %d fit", len(data), maxManifestBytes)
	}
	return data, err
}

// Offer is what is told of a transfer before it is sent.
func (m Manifest) Offer(encoded []byte) FileOffer {
	sum := sha256.Sum256(encoded)
	offer := FileOffer{Entries: len(m.Files), ManifestBytes: len(encoded), SHA256: hex.EncodeToString(sum[:])}
	for _, file := range m.Files {
		offer.Bytes += file.Bytes
	}
	return offer
}

// ParseManifest reads the manifest that an offer has told of.
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
	if told := m.Offer(data); told != offer {
		return m, bridge.Errorf(bridge.Invalid, "the list of files is not what was offered: %d files of %d bytes instead of %d of %d", told.Entries, told.Bytes, offer.Entries, offer.Bytes)
	}
	return m, nil
}

func (m Manifest) check() error {
	if len(m.Files) == 0 {
		return bridge.Errorf(bridge.Invalid, "there is no file in it")
	}
	if len(m.Files) > usualTransferEntries {
		return bridge.Errorf(bridge.TooLarge, "%d files are too many: at most %d fit", len(m.Files), usualTransferEntries)
	}
	taken := map[string]string{} // what each name is there, a file or a folder, as it was first written
	for _, file := range m.Files {
		if err := CheckPath(file.Path); err != nil {
			return err
		}
		if file.Bytes < 0 || file.Bytes > usualTotal || !isSum(file.SHA256) {
			return bridge.Errorf(bridge.Invalid, "%q has no proper size and checksum", file.Path)
		}
		if err := take(taken, file.Path); err != nil {
			return err
		}
	}
	return nil
}

// usualTotal keeps the sum over all files from overflowing.
const usualTotal = 1 << 50

// take notes a file's path and the folders above it, and refuses what would be the
// same name on a file system that does not tell letters' case or forms apart.
func take(taken map[string]string, path string) error {
	for i, r := range path {
		if r != '/' {
			continue
		}
		folder := path[:i+1]
		if there, found := taken[fold(path[:i])]; found && there != folder {
			return collide(path, there)
		}
		taken[fold(path[:i])] = folder
	}
	if there, found := taken[fold(path)]; found {
		return collide(path, there)
	}
	taken[fold(path)] = path
	return nil
}

func collide(path, there string) error {
	if path == there {
		return bridge.Errorf(bridge.Invalid, "%q is there twice: what is sent together needs a name of its own each", path)
	}
	return bridge.Errorf(bridge.Invalid, "%q and %q are one name on some systems", path, strings.TrimSuffix(there, "/"))
}

// fold makes one of all names that some file system takes for the same.
func fold(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFKC.String(name))))
}

func isSum(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// reserved are names that are devices on Windows, with whatever extension.
var reserved = []string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"}

// CheckPath refuses a path that is not relative, does not stay below its folder, or
// means something else, or nothing, on another system.
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

// isOdd reports a sign that no portable name has: what Windows gives a meaning, what
// cannot be seen, and what turns the direction of the text, by which a name looks like
// another one.
func isOdd(r rune) bool {
	return strings.ContainsRune(`\<>:"|?*`, r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError || r == '\uFEFF'
}

// FileOffer tells of a transfer.
type FileOffer struct {
	Entries       int    `json:"entries"`
	Bytes         int64  `json:"bytes"` // of all files
	ManifestBytes int    `json:"manifestBytes"`
	SHA256        string `json:"sha256"` // of the manifest
}

// Total is how many bytes the transfer is.
func (o FileOffer) Total() int64 { return int64(o.ManifestBytes) + o.Bytes }

// FileKind says what a frame of a transfer is.
type FileKind string

// The frames. A sender offers, and offers again after every cut; the receiver accepts
// from where it has it all on the disk, or refuses, or says that it is done. Either
// side can refuse at any time, which ends the transfer.
const (
	OfferFiles  FileKind = "offer"
	AcceptFiles FileKind = "accept" // At: send from there
	FileChunk   FileKind = "chunk"  // At: where it belongs; the frame's body is the chunk
	FileAck     FileKind = "ack"    // At: everything before has been taken
	FilesDone   FileKind = "done"   // it is all there, and verified
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

// Encode makes the payload.
func (f FileFrame) Encode() ([]byte, error) {
	if f.Error != nil {
		f.Error = &bridge.Error{Code: f.Error.Code, Message: cut(f.Error.Message)}
	}
	return json.Marshal(f)
}

// ParseFileFrame reads a file-stream frame's payload; body is how many bytes came
// beside it. A later release may say more in it than this one knows.
func ParseFileFrame(payload []byte, body int) (FileFrame, error) {
	var f FileFrame
	if err := bridge.DecodeAdditive(payload, maxFilePayloadBytes, &f); err != nil {
		return FileFrame{}, err
	}
	if id, err := uuid.Parse(f.ID); err != nil || id.String() != f.ID { // it names a folder
		return FileFrame{}, bridge.Errorf(bridge.Invalid, "a transfer's id is a UUID")
	}
	var fits bool
	switch f.Kind {
	case OfferFiles:
		fits = f.Offer != nil && f.Offer.isProper()
	case RefuseFiles:
		fits = f.Error != nil
	case FileChunk:
		fits = body > 0 && body <= ChunkBytes
	case AcceptFiles, FileAck, FilesDone:
		fits = true
	}
	if !fits || f.At < 0 || body > 0 && f.Kind != FileChunk {
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
