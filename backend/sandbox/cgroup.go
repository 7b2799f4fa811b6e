package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
)

// cgroupPrefix begins the names of the control groups of jobs.
const cgroupPrefix = "bridge-"

// nameBytes is how much of a hash makes a control group's name: enough that nobody meets
// it by chance.
const nameBytes = 10

// hash returns a number that follows from the mark alone. The secret does not follow from it.
func (m Mark) hash() [sha256.Size]byte {
	return sha256.Sum256([]byte(m.Job + "\x00" + m.Token))
}

// isWhole reports whether the mark names one run: half a mark would fit strangers.
func (m Mark) isWhole() bool { return m.Job != "" && m.Token != "" }

// cgroupName returns the name of the control group of the run that the mark names.
func (m Mark) cgroupName() string {
	hash := m.hash()
	return cgroupPrefix + m.Job + "-" + hex.EncodeToString(hash[:nameBytes])
}
