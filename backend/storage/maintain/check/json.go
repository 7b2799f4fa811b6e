package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"bridge/backend/agent/programs"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// maxJSONBytes limits what is read of one JSON file.
const maxJSONBytes = 64 << 20

// jsonStore is a JSON file that Bridge knows by name.
type jsonStore struct {
	path    string
	version int    // the newest form that this build knows
	list    string // a member that must be a list of objects, "" for none
	// read, if set, reads the members as their users do.
	read func(config.Home, []byte) error
}

// ConfigFile is the path of the settings in a finding.
const ConfigFile = "config.json"

var jsonStores = []jsonStore{
	{path: ConfigFile, version: config.Version, read: func(h config.Home, _ []byte) error {
		_, err := h.Config()
		return err
	}},
	{path: config.AutoWakeStore, version: config.AutoWakeVersion, read: func(_ config.Home, data []byte) error {
		return json.Unmarshal(data, &config.AutoWakeChoices{})
	}},
	{path: config.RulesStore, version: config.RulesVersion, list: "rules"},
	{path: config.NeedsStore, version: config.NeedsVersion, read: func(_ config.Home, data []byte) error {
		return json.Unmarshal(data, &config.PutAway{})
	}},
	{path: config.DraftsStore, version: config.DraftsVersion, list: "drafts"},
	{path: config.CostsStore, version: config.CostsVersion, list: "days"},
	{path: config.PausesStore, version: config.PausesVersion, read: func(_ config.Home, data []byte) error {
		return json.Unmarshal(data, &config.Pauses{})
	}},
	{path: config.ProofsStore, version: config.ProofsVersion, list: "proofs", read: func(_ config.Home, data []byte) error {
		return json.Unmarshal(data, &config.Proofs{})
	}},
	{path: "jobs.json", version: lease.JSONVersion, list: "jobs"},
	{path: "remote-jobs.json", version: lease.JSONVersion, list: "jobs"},
	{path: programs.InstallFile, version: 1},
}

// jsonFolders hold one JSON object per file.
var jsonFolders = []string{"network", "approvals", "jobs", "pending-job-writes"}

func (k *checker) checkJSON(ctx context.Context) error {
	for _, jsonStore := range jsonStores {
		if _, ok := k.regular(jsonStore.path); ok {
			k.checkStore(jsonStore)
		}
	}
	return k.walk(ctx, func(name string, entry fs.DirEntry) error {
		top, _, _ := strings.Cut(name, "/")
		isFile := entry.Type().IsRegular() && strings.HasSuffix(name, ".json") && !disk.IsTemp(name)
		switch {
		case isFile && top == "read-journal":
			k.checkReceipt(name)
		case isFile && path.Dir(name) == pendingFolder && config.IsPendingWrite(path.Base(name)):
			k.checkPending(name)
		case isFile && name == pendingFolder+"/"+job.PendingFile: // read with the jobs
		case isFile && k.isManual(name): // a result that a person fetches
		case isFile && slices.Contains(jsonFolders, top) && !isStore(name):
			k.checkStore(jsonStore{path: name})
		case entry.IsDir() && (!slices.Contains(jsonFolders, top) && top != "read-journal" || inventory.IsAgents(name+"/")):
			return fs.SkipDir
		}
		return nil
	})
}

func isStore(name string) bool {
	return slices.ContainsFunc(jsonStores, func(store jsonStore) bool { return store.path == name })
}

// isManual reports whether the file is a result, or a receipt of one, that is too large
// to be read automatically (JOB-04). It reports a receipt as a finding.
func (k *checker) isManual(name string) bool {
	size := inventory.SizeOf(inventory.JoinHome(k.dir, name))
	if size <= runs.MaxEnvelopeBytes {
		return false
	}
	if isReceipt := strings.HasPrefix(name, pendingFolder+"/") && path.Base(name) == "receipt.json"; isReceipt {
		k.find(ResultManual, name, "the receipt is "+bridge.Size(size)+", too large to be read by itself: it is kept whole")
		return true
	}
	return path.Base(name) == "envelope.json"
}

// checkStore reads one file whole: first parse, then version, then shape, because members
// of a newer form may have another meaning.
func (k *checker) checkStore(store jsonStore) {
	data, ok := k.readJSON(store.path)
	if !ok {
		return
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		k.find(JSONShape, store.path, "it is not a JSON object")
		return
	}
	if store.version > 0 && !k.checkVersion(store, members["version"]) {
		return
	}
	if store.list != "" {
		var list []json.RawMessage
		if raw, exists := members[store.list]; exists && (json.Unmarshal(raw, &list) != nil || list == nil) {
			k.find(JSONShape, store.path, store.list+" is not a list")
		}
		for i, entry := range list {
			if entry[0] != '{' {
				k.find(JSONShape, store.path, fmt.Sprintf("%s[%d] is not a JSON object", store.list, i))
				break
			}
		}
	}
	if store.read != nil {
		if err := store.read(k.worker.Home, data); err != nil {
			k.find(JSONShape, store.path, inventory.ShortErr(err))
			return
		}
	}
	if store.path == ConfigFile {
		unknown, err := config.File{Home: k.worker.Home}.Unknown()
		if err != nil {
			return // it was changed meanwhile
		}
		for _, member := range unknown {
			k.find(SettingUnknown, store.path, member.Text())
		}
	}
}

// commented is the file in which people may write comments.
const commented = "config.json"

// handEdited are the files that people edit: Bridge accepts a byte order mark before the
// document.
var handEdited = []string{ConfigFile, config.AutoWakeStore, config.RulesStore, config.NeedsStore, config.PausesStore, config.ProofsStore}

// readJSON returns the bytes of one JSON document.
func (k *checker) readJSON(name string) ([]byte, bool) {
	data, err := disk.ReadLimited(inventory.JoinHome(k.dir, name), maxJSONBytes)
	switch {
	case inventory.IsGone(err):
		return nil, false // it vanished meanwhile
	case errors.Is(err, disk.ErrTooLarge):
		k.find(JSONDamaged, name, fmt.Sprintf("it is larger than %d bytes", maxJSONBytes))
		return nil, false
	case err != nil:
		k.find(JSONUnreadable, name, disk.Reason(err))
		return nil, false
	}
	if slices.Contains(handEdited, name) {
		_, data = disk.CutBOM(data)
	}
	var any json.RawMessage
	read := data
	if name == commented {
		read = disk.PlainJSON(data)
	}
	if err := json.Unmarshal(read, &any); err != nil {
		k.find(JSONDamaged, name, "it is not valid JSON: "+disk.ExplainJSON(data, err).Error())
		return nil, false
	}
	data = read
	if duplicate, found := disk.FindDuplicate(data); found {
		k.find(JSONShape, name, duplicate.Error())
		return nil, false
	}
	return data, true
}

func (k *checker) checkVersion(store jsonStore, raw json.RawMessage) bool {
	if raw == nil {
		return true // the first form
	}
	var version int
	if json.Unmarshal(raw, &version) != nil || version < 1 {
		k.find(JSONShape, store.path, "its version is not a whole number from 1")
		return false
	}
	if version > store.version {
		k.find(JSONNewer, store.path, fmt.Sprintf("it has version %d and this Bridge knows versions up to %d", version, store.version))
		return false
	}
	return true
}

// pendingFolder is the journal of waiting writes to JSON stores.
const pendingFolder = "pending-job-writes/v1"

// checkPending reads a pending write as strictly as the broker that applies it. Readable
// ones are one finding in total.
func (k *checker) checkPending(name string) {
	write, err := config.Shared{Home: k.worker.Home}.ReadPending(path.Base(name))
	if inventory.IsGone(err) {
		return // it was applied meanwhile
	}
	if err != nil {
		k.find(PendingDamaged, name, inventory.ShortErr(err))
		return
	}
	waits(k, write.Store)
}

// waits reports, once for all stores, that writes are waiting.
func waits(k *checker, store string) {
	if !k.found(pendingFolder) {
		k.find(PendingWrites, pendingFolder, "writes to "+store+" and what comes after them wait until older programs have left")
	}
}

// checkReceipt reads a receipt as strictly as the broker that imports it.
func (k *checker) checkReceipt(name string) {
	data, err := disk.ReadLimited(inventory.JoinHome(k.dir, name), maxJSONBytes)
	if inventory.IsGone(err) {
		return // it was imported meanwhile
	}
	if err == nil {
		err = bridge.DecodeStrict(data, maxJSONBytes, &[]ipc.JournalLine{})
	}
	if err != nil {
		k.find(JournalDamaged, name, "the receipt "+path.Base(name)+" cannot be read: "+inventory.ShortErr(err))
	}
}
