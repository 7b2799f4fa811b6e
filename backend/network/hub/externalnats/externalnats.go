// Package externalnats connects a PC to a team's own NATS server instead of bridge-hub
// (HUB-01): its URLs, the credentials, and a check of its setup as `bridge-hub
// permissions` describes it. Such a server is not trusted: the members are in the roster,
// which the team's own key seals.
package externalnats

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
)

const (
	maxURLs     = 8
	maxURLChars = 200
	// MaxFileBytes limits a file of credentials or certificates.
	MaxFileBytes = 64 << 10
)

// Access is the access to such a server. Creds is secret.
type Access struct {
	Creds string `json:"creds"`           // a file of credentials: a JWT and its seed, or a seed alone
	CA    string `json:"ca,omitempty"`    // PEM certificates that sign the server's; "" for the system's
	Plain bool   `json:"plain,omitempty"` // its owner allows nats:// beyond this machine
}

// Check fails for URLs or credentials that cannot work.
func (a Access) Check(urls []string) error {
	if len(urls) == 0 || len(urls) > maxURLs {
		return bridge.Errorf(bridge.Invalid, "a NATS server has 1 to %d URLs", maxURLs)
	}
	for _, text := range urls {
		if err := checkURL(text, a.Plain); err != nil {
			return err
		}
	}
	_, err := a.Options()
	return err
}

func checkURL(text string, plain bool) error {
	at, err := url.Parse(text)
	if err == nil {
		_, err = strconv.ParseUint(at.Port(), 10, 16)
	}
	if err != nil || len(text) > maxURLChars || at.Scheme != "tls" && at.Scheme != "nats" || at.Hostname() == "" || at.Port() == "0" || text != at.Scheme+"://"+at.Host {
		return bridge.Errorf(bridge.Invalid, "%q is no URL of a NATS server: that is tls://host:port, or nats://host:port on this machine", shown(text))
	}
	if ip := net.ParseIP(at.Hostname()); at.Scheme == "nats" && !plain && at.Hostname() != "localhost" && !ip.IsLoopback() {
		return bridge.Errorf(bridge.Denied, "%s is not encrypted, and not on this machine: use tls://, or say --plain where the way to it is safe by itself", text)
	}
	return nil
}

// shown returns a foreign text without the secret that a URL may contain.
func shown(text string) string {
	if start, end := strings.Index(text, "://"), strings.LastIndex(text, "@"); end > start && start >= 0 {
		text = text[:start+3] + "..." + text[end:]
	}
	return text[:min(len(text), maxURLChars)]
}

// Options returns the NATS options that authenticate this PC and verify the server. No
// error contains a secret.
func (a Access) Options() ([]nats.Option, error) {
	login, err := a.login()
	if err != nil {
		return nil, err
	}
	options := []nats.Option{login, nats.IgnoreDiscoveredServers()}
	if a.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(a.CA)) {
			return nil, bridge.Errorf(bridge.Invalid, "the file given as --ca has no certificate in PEM")
		}
		options = append(options, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	}
	return options, nil
}

var errCreds = bridge.Errorf(bridge.Invalid, "the credentials file has neither a user's JWT and seed nor a user's seed")

// Key returns the public half of the key in the credentials. It fails with Invalid if the
// credentials have no user's seed.
func (a Access) Key() (string, error) {
	pair, err := nkeys.ParseDecoratedUserNKey([]byte(a.Creds))
	if err != nil {
		return "", errCreds
	}
	return pair.PublicKey()
}

func (a Access) login() (nats.Option, error) {
	key, err := nkeys.ParseDecoratedUserNKey([]byte(a.Creds))
	if err != nil {
		return nil, errCreds
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, errCreds
	}
	if !strings.Contains(a.Creds, "-----BEGIN NATS USER JWT-----") {
		return nats.Nkey(public, key.Sign), nil
	}
	token, err := nkeys.ParseDecoratedJWT([]byte(a.Creds))
	if err != nil || strings.Count(token, ".") != 2 {
		return nil, errCreds
	}
	return nats.UserJWT(func() (string, error) { return token, nil }, key.Sign), nil
}
