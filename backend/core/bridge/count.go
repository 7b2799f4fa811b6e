package bridge

import (
	"encoding/json"
	"strconv"
)

// Count is a number of items that may be unknown because its source cannot be read. JSON
// has null for an unknown one.
type Count int

// UnknownCount is a count that could not be read.
const UnknownCount Count = -1

// IsKnown reports whether the count was read.
func (c Count) IsKnown() bool { return c >= 0 }

// String returns the number, or "?" for an unknown count.
func (c Count) String() string {
	if !c.IsKnown() {
		return "?"
	}
	return strconv.Itoa(int(c))
}

// Plus returns the sum, which is unknown if one of both is.
func (c Count) Plus(other Count) Count {
	if !c.IsKnown() || !other.IsKnown() {
		return UnknownCount
	}
	return c + other
}

// Of returns "1 message", "3 messages", or "? messages" for an unknown count.
func (c Count) Of(noun string) string {
	if !c.IsKnown() {
		return "? " + Counted(0, noun)[len("0 "):]
	}
	return Counted(int(c), noun)
}

// MarshalJSON returns the number, or null for an unknown count.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.IsKnown() {
		return []byte("null"), nil
	}
	return json.Marshal(int(c))
}

// UnmarshalJSON reads a number, or null as an unknown count. It fails for anything else.
func (c *Count) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*c = UnknownCount
		return nil
	}
	return json.Unmarshal(data, (*int)(c))
}
