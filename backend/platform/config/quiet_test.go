package config

import (
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

func TestNED_05_QuietHoursHoldOverMidnight(t *testing.T) {
	for _, tt := range []struct {
		from, to, at string
		want         bool
	}{
		{"22:00", "07:00", "21:59", false},
		{"22:00", "07:00", "22:00", true},
		{"22:00", "07:00", "00:00", true},
		{"22:00", "07:00", "06:59", true},
		{"22:00", "07:00", "07:00", false},
		{"12:00", "13:30", "13:29", true},
		{"12:00", "13:30", "13:30", false},
		{"12:00", "13:30", "11:59", false},
		{"08:00", "08:00", "08:00", false},
		{"", "", "03:00", false},
	} {
		at, err := time.Parse(clockForm, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Quiet{tt.from, tt.to}).Has(at); got != tt.want {
			t.Errorf("%s to %s at %s: %t", tt.from, tt.to, tt.at, got)
		}
	}
}

func TestNED_05_AnHourThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []Quiet{{"22:00", ""}, {"", "07:00"}, {"24:00", "07:00"}, {"7:00", "08:00"}, {"22", "7"}, {"evening", "morning"}} {
		if err := bad.check(); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, good := range []Quiet{{}, {"22:00", "07:00"}} {
		if err := good.check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}
