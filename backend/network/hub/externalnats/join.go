package externalnats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

// Place is a PC's place in a team with its own server.
type Place struct {
	Team   string
	Self   string // the PC's identity
	Roster string // the identity of the key that seals the roster, from the team's owner
	URLs   []string
	Access Access
}

// answer is the timeout of the server's answers.
const answer = 10 * time.Second

// Check checks whether the PC has that place, and returns its name in the team. The error
// names in one sentence what is missing. Check writes nothing on the server. seen is the
// number of the PC's roster entry that it read before, 0 for none.
func (p Place) Check(ctx context.Context, seen int64) (name string, err error) {
	if err := subject.CheckTeam(p.Team); err != nil {
		return "", err
	}
	if err := CheckRoster(p.Roster); err != nil {
		return "", err
	}
	if err := p.Access.Check(p.URLs); err != nil {
		return "", err
	}
	if err := p.probe(ctx); err != nil {
		return "", err
	}
	conn, err := Connect(p.URLs, p.Access, nats.CustomInboxPrefix(subject.InboxPrefix(p.Self)))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	s := server{conn: conn, place: p}
	if err := s.checkStreams(ctx); err != nil {
		return "", err
	}
	return s.checkMembership(ctx, seen)
}

// CheckRoster fails with Invalid if key is not the id of a team's key.
func CheckRoster(key string) error {
	if subject.CheckPC(key) != nil {
		return bridge.Errorf(bridge.Invalid, "%q is no fingerprint of a team's key: that has 64 hexadecimal digits, and `bridge-hub roster print` shows it", key)
	}
	return nil
}

// Connect connects to the server. It fails for one that is too old. Its errors are for people.
func Connect(urls []string, access Access, more ...nats.Option) (*nats.Conn, error) {
	options, err := access.Options()
	if err != nil {
		return nil, err
	}
	options = append(options, nats.Name("bridge"), nats.NoReconnect(), nats.Timeout(answer))
	where := strings.Join(urls, ", ")
	conn, err := nats.Connect(strings.Join(urls, ","), append(options, more...)...)
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired):
		return nil, bridge.Errorf(bridge.Denied, "the NATS server at %s refuses these credentials", where)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return nil, bridge.Errorf(bridge.Denied, "the NATS server at %s does not encrypt: its administrator has to set up TLS", where)
	case errors.Is(err, nats.ErrNoServers):
		return nil, bridge.Errorf(bridge.Unavailable, "no NATS server answers at %s", where)
	case err != nil:
		return nil, bridge.WithCause(bridge.Unavailable, err, fmt.Sprintf("the NATS server at %s cannot be used: %s", where, strings.TrimPrefix(err.Error(), "nats: ")))
	}
	if err := checkVersion(conn.ConnectedServerVersion()); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// The oldest NATS server version that a team can use.
const oldestMajor, oldestMinor = 2, 12

func checkVersion(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return bridge.Errorf(bridge.Unsupported, "the NATS server is of version %s: a team needs %d.%d or newer", cmp.Or(version, "unknown"), oldestMajor, oldestMinor)
	}
	return nil
}

// probe checks by attempts whether the server allows this PC what it needs, and nothing
// more (HUB-02). The streams refuse the attempts, or they have no receiver.
func (p Place) probe(ctx context.Context) error {
	var mu sync.Mutex
	refused := map[string]bool{}
	closed := make(chan struct{})
	conn, err := Connect(p.URLs, p.Access, nats.NoEcho(), nats.CustomInboxPrefix(subject.InboxPrefix(p.Self)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			mu.Lock()
			defer mu.Unlock()
			if found := violation.FindStringSubmatch(err.Error()); found != nil {
				refused[strings.ToLower(found[1])+" "+found[2]] = true
			}
		}), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		return err
	}
	needed, excess := p.tries()
	for _, attempt := range append(needed, excess...) {
		if err = attempt.on(conn); err != nil {
			break
		}
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		err = conn.FlushWithContext(ctx)
	}
	conn.Close()
	<-closed // after all refusals were received
	if err != nil {
		return bridge.WithCause(bridge.Unavailable, err, "the NATS server ended the connection: "+err.Error())
	}
	for _, attempt := range needed {
		if refused[attempt.key()] {
			return bridge.Errorf(bridge.Denied, "the NATS server does not let this PC %s: `bridge-hub permissions` prints what its user has to be allowed", attempt.words())
		}
	}
	for _, attempt := range excess {
		if !refused[attempt.key()] {
			return bridge.Errorf(bridge.Denied, "the NATS server lets this PC %s, which no PC may: `bridge-hub permissions` prints what its user may be allowed", attempt.words())
		}
	}
	return nil
}

// violation matches the server's error for something that it does not allow.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]*)"`)

// try is an attempt that shows whether the server allows something.
type try struct {
	hear bool // subscribe, else publish
	at   string
}

func (t try) key() string {
	if t.hear {
		return "subscription " + t.at
	}
	return "publish " + t.at
}

func (t try) words() string {
	if t.hear {
		return "subscribe to " + t.at
	}
	return "publish to " + t.at
}

func (t try) on(conn *nats.Conn) error {
	if t.hear {
		_, err := conn.Subscribe(t.at, func(*nats.Msg) {})
		return err
	}
	// No stream stores it; an inbox and the sender of an answer ignore it.
	return conn.PublishMsg(&nats.Msg{Subject: t.at, Data: []byte("+WPI"), Header: nats.Header{"Nats-Expected-Stream": []string{"none"}}})
}

// tries returns what this PC must be allowed, and what it must not be allowed.
func (p Place) tries() (needed, excess []try) {
	nobody := strings.Repeat("0", len(p.Self))
	allowed := subject.For(p.Team, p.Self)
	for _, at := range allowed.Publish {
		at = strings.Replace(at, ".*.", "."+p.Self+".", 1)
		if rest, open := strings.CutSuffix(at, ">"); open {
			at = rest + "probe"
		}
		needed = append(needed, try{at: at})
	}
	for _, at := range allowed.Subscribe {
		needed = append(needed, try{hear: true, at: at})
	}
	for _, sort := range []subject.Sort{subject.Frame, subject.Message, subject.Decision} {
		excess = append(excess, try{at: subject.Subject{Team: p.Team, From: nobody, To: p.Self, Sort: sort}.String()})
	}
	excess = append(excess,
		try{at: subject.BucketKey(subject.PresenceBucket(p.Team), nobody)}, try{at: subject.BucketKey(subject.RosterBucket(p.Team), p.Self)},
		try{hear: true, at: subject.InboxPrefix(nobody) + ".>"}, try{hear: true, at: subject.Frames(p.Team, nobody)})
	return needed, excess
}

// server is a server that allows this PC what it needs.
type server struct {
	conn  *nats.Conn
	place Place
}

// The engine's error codes for missing objects.
const (
	codeNoStream   = 10059
	codeNoConsumer = 10014
)

// asked is the engine's answer about a stream or consumer.
type asked struct {
	Config struct {
		Direct    bool   `json:"allow_direct"`
		Filter    string `json:"filter_subject"`
		Retention string `json:"retention"`
	} `json:"config"`
	State struct {
		Messages uint64 `json:"messages"`
	} `json:"state"`
	Error *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

const publishes = "the team's owner makes it with `bridge-hub roster publish`"

func (s server) ask(ctx context.Context, api, what string) (found asked, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	msg, err := s.conn.RequestWithContext(ctx, "$JS.API."+api, nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return found, bridge.Errorf(bridge.Unsupported, "the NATS server has no JetStream for this PC's account")
	case err != nil:
		return found, bridge.WithCause(bridge.Unavailable, err, "the NATS server did not answer about "+what)
	}
	if err := json.Unmarshal(msg.Data, &found); err != nil {
		return found, bridge.Errorf(bridge.Invalid, "the NATS server told of %s with what is no JSON: %v", what, err)
	}
	switch {
	case found.Error == nil:
		return found, nil
	case found.Error.Code == codeNoStream || found.Error.Code == codeNoConsumer:
		return found, bridge.Errorf(bridge.NotFound, "the NATS server has not got %s: %s", what, publishes)
	}
	return found, bridge.Errorf(bridge.Unsupported, "the NATS server cannot tell of %s: %s", what, found.Error.Description)
}

// checkStreams fails if the server lacks what a team needs.
func (s server) checkStreams(ctx context.Context) error {
	team := s.place.Team
	for _, row := range []struct{ stream, what string }{
		{subject.BucketStream(subject.RosterBucket(team)), "the team's roster, " + subject.BucketStream(subject.RosterBucket(team))},
		{subject.BucketStream(subject.PresenceBucket(team)), "the stream " + subject.BucketStream(subject.PresenceBucket(team))},
		{subject.DecisionStream(team), "the stream " + subject.DecisionStream(team)},
	} {
		found, err := s.ask(ctx, "STREAM.INFO."+row.stream, row.what)
		if err != nil {
			return err
		}
		if !found.Config.Direct {
			return bridge.Errorf(bridge.Unsupported, "the NATS server has %s without direct get: %s", row.what, strings.Replace(publishes, "makes it", "sets it right", 1))
		}
	}
	stream := subject.MessageStream(team)
	found, err := s.ask(ctx, "CONSUMER.INFO."+stream+"."+subject.Consumer(s.place.Self), "this PC's inbox in "+stream)
	if err == nil && found.Config.Filter != subject.Inbox(team, s.place.Self) {
		err = bridge.Errorf(bridge.Unsupported, "the NATS server has this PC's inbox with another filter (%s): %s", found.Config.Filter, publishes)
	}
	if most := s.conn.MaxPayload(); err == nil && most < subject.MaxPayloadBytes {
		err = bridge.Errorf(bridge.Unsupported, "the NATS server takes messages of %d bytes at most: its administrator has to set max_payload to %d", most, subject.MaxPayloadBytes)
	}
	return err
}

// checkMembership returns the PC's name. It fails if the team's key has not named the PC.
func (s server) checkMembership(ctx context.Context, seen int64) (name string, err error) {
	p := s.place
	bucket := subject.RosterBucket(p.Team)
	stream, at := subject.BucketStream(bucket), subject.BucketKey(bucket, p.Self)
	asking, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	msg, err := s.conn.RequestWithContext(asking, "$JS.API.DIRECT.GET."+stream+"."+at, nil)
	if err != nil {
		return "", bridge.WithCause(bridge.Unavailable, err, "the NATS server did not answer about the team's roster")
	}
	if status := msg.Header.Get("Status"); status != "" {
		return "", s.unnamed(ctx, stream)
	}
	body, number, err := subject.Open(p.Roster, at, msg.Data)
	if err != nil {
		return "", unsealed(p.Roster, msg.Data)
	}
	member, err := subject.ParseMember(body)
	switch {
	case err != nil:
		return "", err
	case number < seen:
		return "", bridge.Errorf(bridge.Conflict, "the NATS server shows an older roster than this PC has seen: it was put back, or the server deceives this PC; the team's owner runs `bridge-hub roster publish`")
	case member.Removed:
		return "", bridge.Errorf(bridge.Denied, "this PC was removed from the team %s", p.Team)
	}
	return member.Name, nil
}

// unnamed returns the reason for which the roster lacks this PC.
func (s server) unnamed(ctx context.Context, stream string) error {
	found, err := s.ask(ctx, "STREAM.INFO."+stream, "the team's roster, "+stream)
	if err != nil {
		return err
	}
	if found.State.Messages == 0 {
		return bridge.Errorf(bridge.NotFound, "the team's roster is empty: the team's owner runs `bridge-hub roster publish`")
	}
	return bridge.Errorf(bridge.Denied, "this PC is not in the team's roster: the team's owner runs `bridge-hub roster add NAME %s`", s.place.Self)
}

// unsealed returns the error for an entry that the team's key has not sealed.
func unsealed(roster string, entry []byte) error {
	if signer := subject.SealedBy(entry); signer != "" && signer != roster {
		return bridge.Errorf(bridge.Denied, "the roster is signed by another key (%s) than the one given as --roster (%s)", link.Fingerprint(signer), link.Fingerprint(roster))
	}
	return bridge.Errorf(bridge.Denied, "the roster's signature is wrong: what it says of this PC was changed on the server")
}
