package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

const (
	// unusedLife is the lifetime of a cookie that its browser does not use.
	unusedLife = 14 * 24 * time.Hour
	// longestLife is the maximum lifetime of a cookie.
	longestLife = 90 * 24 * time.Hour
	// useStep is the precision of a cookie's last use.
	useStep = time.Hour
	// maxBrowsers bounds the valid cookies: a new one replaces the least recently
	// used.
	maxBrowsers = 64
)

// BrowserStore stores the list of browsers between runs of the broker.
type BrowserStore interface {
	Browsers() ([]config.Browser, error)
	SetBrowsers(list []config.Browser) error
}

// browsers checks the cookies. It keeps only hashes of them, made with the launch
// secret: neither the list nor the secret reveals a cookie, and a new secret ends
// them all (SEC-01).
type browsers struct {
	secret func() (config.Secret, error)
	store  BrowserStore // nil keeps them only in memory
	now    func() time.Time

	mu     sync.Mutex // guards below
	loaded bool
	list   []config.Browser
}

// open returns a new cookie's value. It fails with Internal if the secret cannot be
// read. If the list cannot be stored, the cookie lasts until the broker ends.
func (b *browsers) open() (string, error) {
	value := rand.Text() // 130 random bits
	hash, err := b.hash(value)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loadLocked()
	at := b.now().UnixMilli()
	if len(b.list) >= maxBrowsers {
		slices.SortFunc(b.list, func(x, y config.Browser) int { return int(x.UsedAt - y.UsedAt) })
		b.list = slices.Delete(b.list, 0, len(b.list)-maxBrowsers+1)
	}
	b.list = append(b.list, config.Browser{Hash: hash, OpenedAt: at, UsedAt: at})
	b.saveLocked()
	return value, nil
}

// check reports whether one of the values is a valid cookie, and records its use.
// It fails with Internal if the secret cannot be read.
func (b *browsers) check(values []string) (bool, error) {
	if err := b.ready(); err != nil {
		return false, err
	}
	hashes := make([]string, 0, len(values))
	for _, value := range values {
		hash, err := b.hash(value)
		if err != nil {
			return false, err
		}
		hashes = append(hashes, hash)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loadLocked()
	i := slices.IndexFunc(b.list, func(browser config.Browser) bool { return slices.Contains(hashes, browser.Hash) })
	if i < 0 || b.isOver(b.list[i]) {
		return false, nil
	}
	if at := b.now().UnixMilli(); at-b.list[i].UsedAt >= useStep.Milliseconds() {
		b.list[i].UsedAt = at
		b.saveLocked()
	}
	return true, nil
}

// forget ends every cookie.
func (b *browsers) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loaded, b.list = true, nil
	b.saveLocked()
}

func (b *browsers) isOver(browser config.Browser) bool {
	now := b.now()
	return now.Sub(time.UnixMilli(browser.UsedAt)) >= unusedLife || now.Sub(time.UnixMilli(browser.OpenedAt)) >= longestLife
}

// ready fails with Internal if the secret cannot be read.
func (b *browsers) ready() error {
	_, err := b.hash("")
	return err
}

// hash returns the stored hash of a cookie's value.
func (b *browsers) hash(value string) (string, error) {
	secret, err := b.secret()
	if err != nil {
		return "", bridge.WithCause(bridge.Internal, err, "the dashboard's secret cannot be read")
	}
	if secret == "" { // an empty key would make the hash public knowledge
		return "", bridge.Errorf(bridge.Internal, "the dashboard has no secret")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("cookie " + CookieName + " " + value))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// loadLocked loads the stored list once. An unreadable list admits no browser.
func (b *browsers) loadLocked() {
	if b.loaded {
		return
	}
	b.loaded = true
	if b.store != nil {
		b.list, _ = b.store.Browsers()
	}
}

func (b *browsers) saveLocked() {
	b.list = slices.DeleteFunc(b.list, b.isOver)
	if b.store != nil {
		_ = b.store.SetBrowsers(b.list) // without it the cookies end with this broker
	}
}
