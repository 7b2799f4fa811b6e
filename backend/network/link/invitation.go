package link

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/bridge"
)

// InvitationLife is how long a code is valid (RMT-01).
const InvitationLife = 10 * time.Minute

// MaxWrongCodes is the number of wrong codes that ends an invitation.
const MaxWrongCodes = 3

// Invitation lets one other PC pair with this one, once. It is in memory only, so the end
// of its process also ends it.
type Invitation struct {
	ID        string // independent of the code
	Code      string // as shown: XXXX-XXXX
	ExpiresAt time.Time

	now   func() time.Time
	mu    sync.Mutex
	wrong int
	state InvitationState
	pair  string        // the id of the PC that used it
	ended chan struct{} // closed when the state is final
}

// InvitationState is the state of an invitation.
type InvitationState string

// The states of an invitation.
const (
	InvitationOpen    InvitationState = "open"
	InvitationUsed    InvitationState = "used"    // a PC has paired by it
	InvitationBurnt   InvitationState = "burnt"   // by three wrong codes
	InvitationExpired InvitationState = "expired" // unused in time
)

// crockford is the base 32 alphabet that people can read aloud: without I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

var codes = base32.NewEncoding(crockford).WithPadding(base32.NoPadding)

const (
	codeBytes = 5 // 40 bits
	codeRunes = 8
)

// NewInvitation returns an invitation with a random code.
func NewInvitation(now func() time.Time) *Invitation {
	random := make([]byte, codeBytes)
	_, _ = rand.Read(random) // it never fails
	code := codes.EncodeToString(random)
	return &Invitation{
		ID: rand.Text(), Code: code[:codeRunes/2] + "-" + code[codeRunes/2:], ExpiresAt: now().Add(InvitationLife),
		now: now, state: InvitationOpen, ended: make(chan struct{}),
	}
}

// CleanCode normalizes a typed code: any case, with or without separator, and with
// letters that look like digits. It fails with Invalid for anything else.
func CleanCode(typed string) (string, error) {
	clean := strings.Map(func(r rune) rune {
		switch r {
		case '-', ' ', '\t':
			return -1
		case 'o', 'O':
			return '0'
		case 'i', 'I', 'l', 'L':
			return '1'
		}
		return r
	}, strings.TrimSpace(typed))
	clean = strings.ToUpper(clean)
	if len(clean) != codeRunes || strings.Trim(clean, crockford) != "" {
		return "", bridge.Errorf(bridge.Invalid, "that is no code: a code has %d letters and digits, as in 7K3M-QX9T", codeRunes)
	}
	return clean, nil
}

// State returns the present state.
func (i *Invitation) State() InvitationState {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stateLocked()
}

func (i *Invitation) stateLocked() InvitationState {
	if i.state == InvitationOpen && !i.now().Before(i.ExpiresAt) {
		i.endLocked(InvitationExpired)
	}
	return i.state
}

func (i *Invitation) endLocked(state InvitationState) {
	i.state = state
	close(i.ended)
}

// Ended returns a channel that is closed when the invitation was used or burnt, or when
// its expiry was noticed.
func (i *Invitation) Ended() <-chan struct{} { return i.ended }

// PairedID returns the id of the PC that used it; "" if none did.
func (i *Invitation) PairedID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pair
}

// WrongCodes returns how many wrong codes were given.
func (i *Invitation) WrongCodes() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.wrong
}

// Withdraw ends an unused invitation.
func (i *Invitation) Withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stateLocked() == InvitationOpen {
		i.endLocked(InvitationExpired)
	}
}

// try uses the code once. The attempt counts as wrong before the check, so that many
// attempts at once gain nothing. prove then makes the pair durable.
func (i *Invitation) try(who string, isRight func() bool, prove func() error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stateLocked() != InvitationOpen {
		return errRefused
	}
	i.wrong++
	if !isRight() {
		if i.wrong >= MaxWrongCodes {
			i.endLocked(InvitationBurnt)
		}
		return errRefused
	}
	i.wrong-- // the code was right, whatever prove returns
	if err := prove(); err != nil {
		return err
	}
	i.pair = who
	i.endLocked(InvitationUsed)
	return nil
}

// wrongCode is all that a refused PC learns.
const wrongCode = "the code is wrong, was used, or has expired"

var errRefused = bridge.Errorf(bridge.Unauthorized, "it was refused: %s", wrongCode)
