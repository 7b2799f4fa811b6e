package config

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// BrowsersStore lists the browsers that have opened the dashboard. It holds only a
// hash of each cookie, so a reader of the file cannot use a cookie (SEC-01).
const BrowsersStore = "browsers.json"

// BrowsersVersion is the newest version of BrowsersStore that this build knows.
const BrowsersVersion = 1

// maxBrowsersBytes bounds how much of BrowsersStore is read.
const maxBrowsersBytes = 1 << 20

// Browsers is the content of BrowsersStore.
type Browsers struct {
	Version int       `json:"version"`
	List    []Browser `json:"browsers"`
}

// Browser is one browser that has opened the dashboard.
type Browser struct {
	Hash     string `json:"hash"`     // of its cookie
	OpenedAt int64  `json:"openedAt"` // milliseconds since 1970
	UsedAt   int64  `json:"usedAt"`   // milliseconds since 1970; at most an hour behind
}

// BrowsersFile reads and writes BrowsersStore of one home.
type BrowsersFile struct{ Home Home }

// Browsers returns the stored browsers, or none if no browser has opened the
// dashboard. It fails with Storage if the file cannot be read.
func (f BrowsersFile) Browsers() ([]Browser, error) {
	var stored Browsers
	err := disk.ReadJSON(f.Home.at(BrowsersStore), maxBrowsersBytes, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, bridge.WithCause(bridge.Storage, err, BrowsersStore+" cannot be read: each browser needs a new launch link")
	case stored.Version > BrowsersVersion:
		return nil, newerStore(BrowsersStore, int64(stored.Version), BrowsersVersion)
	}
	return stored.List, nil
}

// SetBrowsers replaces the list. It fails with Storage if the file cannot be written.
func (f BrowsersFile) SetBrowsers(list []Browser) error {
	data, err := json.Marshal(Browsers{BrowsersVersion, list})
	if err != nil {
		return fmt.Errorf("encode %s: %w", BrowsersStore, err)
	}
	if err := disk.WriteAtomic(f.Home.at(BrowsersStore), append(data, '\n'), disk.PrivateFile); err != nil {
		return bridge.WithCause(bridge.Storage, err, BrowsersStore+" cannot be written")
	}
	return nil
}

// RenewSecret replaces the dashboard's secret, which invalidates every cookie. It
// fails with Storage if the file cannot be written.
func (f BrowsersFile) RenewSecret() error {
	if err := disk.WriteAtomic(f.Home.LaunchSecretFile(), []byte(rand.Text()+"\n"), disk.PrivateFile); err != nil {
		return bridge.WithCause(bridge.Storage, err, "the dashboard's secret cannot be replaced")
	}
	return nil
}
