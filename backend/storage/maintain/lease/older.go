package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
)

// JSONVersion is the newest form of jobs.json and similar files, as in other programs.
const JSONVersion = 4

// SharedForm is the form in which this build writes the JSON stores that several programs
// of a home share. The other programs know forms up to JSONVersion: their auto-wake.json
// has other members.
const SharedForm = JSONVersion + 1

// Older states what the live programs of a home that are older than this build can still
// read. While there are some, a broker upgrades nothing that they share (VER-04, VER-05).
type Older struct {
	Schema   int      // the newest schema of bridge.db that all of them know, 0 if none is older
	JSON     int      // the same for the JSON stores
	Programs []string // their names, for people
}

// capability is another program's record of itself in storage-capabilities/<pid>.json.
type capability struct {
	JSON     int    `json:"json"`
	SQLite   int    `json:"sqlite"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Identity string `json:"processIdentity"`
}

// unknownVersion is the assumed version of a live program with an unreadable record: then
// nothing is upgraded.
const unknownVersion = 1

// OlderPrograms finds the live older programs, by leases and by other programs' records.
// Age has no meaning. A lease without versions is of a build that knew the present ones.
// It fails if the folder of leases or of records is unreadable.
func OlderPrograms(home config.Home) (Older, error) {
	var older Older
	writers, err := Writers(home)
	if err != nil {
		return older, err
	}
	for _, writer := range writers {
		if writer.PID != os.Getpid() && writer.Schema > 0 && writer.Blocks() {
			older.add(writer.Schema, writer.JSON, writer.String())
		}
	}
	entries, err := os.ReadDir(home.StorageCapabilities())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return older, fmt.Errorf("list the programs of this home: %w", err)
	}
	for _, entry := range entries {
		number, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if pid, err := strconv.Atoi(number); isRecord && err == nil && pid > 0 && pid != os.Getpid() {
			older.look(pid, filepath.Join(home.StorageCapabilities(), entry.Name()))
		}
	}
	return older, nil
}

// add adds a live program if it is older.
func (o *Older) add(version, jsonForm int, who string) {
	if version >= bridge.StoreVersion && jsonForm >= SharedForm {
		return
	}
	o.Programs = append(o.Programs, who)
	if version < bridge.StoreVersion && (o.Schema == 0 || version < o.Schema) {
		o.Schema = version
	}
	if jsonForm < SharedForm && (o.JSON == 0 || jsonForm < o.JSON) {
		o.JSON = jsonForm
	}
}

// look reads the record of one process.
func (o *Older) look(pid int, path string) {
	var record capability
	data, err := disk.ReadLimited(path, maxHolderBytes)
	if errors.Is(err, fs.ErrNotExist) || !proc.Alive(pid) {
		return
	}
	if err != nil || json.Unmarshal(data, &record) != nil {
		o.add(unknownVersion, unknownVersion, fmt.Sprintf("process %d, whose record %s cannot be read", pid, path))
		return
	}
	// Only on Linux do other programs' records have the identity in Bridge's form.
	known := Holder{PID: pid, Identity: record.Identity}
	if runtime.GOOS == "linux" && !known.Lives() {
		return
	}
	who := strings.TrimSpace(record.Name + " " + record.Version)
	if who == "" {
		who = "a program"
	}
	o.add(max(record.SQLite, unknownVersion), max(record.JSON, unknownVersion), fmt.Sprintf("%s (process %d)", who, pid))
}

// WhileDeferred adds the older programs that an upgrade waits for to an error that
// suggests that upgrade.
func WhileDeferred(home config.Home, err error) error {
	older, lookErr := OlderPrograms(home)
	var refusal *bridge.Error
	if !errors.As(err, &refusal) || refusal.Code != bridge.Unsupported || lookErr != nil || older.Schema == 0 {
		return err
	}
	return bridge.WithCause(bridge.Unsupported, err, refusal.Message+"; its upgrade waits until older programs have left: "+strings.Join(older.Programs, ", "))
}

// ApplyPending applies the writes to JSON stores that waited until older programs had
// left (VER-05), and returns their number. It fails at the first write that cannot be
// applied.
func (w Worker) ApplyPending() (int, error) {
	return config.Shared{Home: w.Home, Now: w.Now, Files: w.Files()}.Apply()
}
