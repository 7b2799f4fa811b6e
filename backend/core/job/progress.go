package job

import (
	"math"
	"time"

	"bridge/backend/core/bridge"
)

// ProgressArgs are the arguments of report_progress (JOB-20).
type ProgressArgs struct {
	Percent    *float64 `json:"percent,omitempty"`
	ETAMinutes *float64 `json:"eta_minutes,omitempty"`
	Note       string   `json:"note,omitempty"`
}

// Progress is a job's reported progress. Unreported fields are zero; HasPercent
// distinguishes 0 % from that.
type Progress struct {
	Percent    int
	HasPercent bool
	ETA        time.Time
	Note       string
}

// ParseProgress reads the arguments of report_progress. It fails with Invalid if all
// are missing or one is out of range.
func ParseProgress(data []byte) (ProgressArgs, error) {
	var args ProgressArgs
	if err := bridge.DecodeStrict(data, maxArgsBytes, &args); err != nil {
		return ProgressArgs{}, err
	}
	if args.Percent == nil && args.ETAMinutes == nil && args.Note == "" {
		return ProgressArgs{}, bridge.Errorf(bridge.Invalid, "say at least one of percent, eta_minutes and note")
	}
	if args.Percent != nil && !(*args.Percent >= 0 && *args.Percent <= 100) {
		return ProgressArgs{}, bridge.Errorf(bridge.Invalid, "percent must be 0 to 100")
	}
	if args.ETAMinutes != nil && !(*args.ETAMinutes >= 0 && *args.ETAMinutes <= MaxETA.Minutes()) {
		return ProgressArgs{}, bridge.Errorf(bridge.Invalid, "eta_minutes must be 0 to 1440")
	}
	if args.Note != "" {
		return args, checkLine("note", args.Note, MaxNoteChars)
	}
	return args, nil
}

// With returns p with the values of a report at that time; it keeps fields that the
// report omits.
func (p Progress) With(args ProgressArgs, at time.Time) Progress {
	if args.Percent != nil {
		p.Percent, p.HasPercent = int(math.Floor(*args.Percent)), true // 99.9 is not complete
	}
	if args.ETAMinutes != nil {
		p.ETA = at.Add(time.Duration(*args.ETAMinutes * float64(time.Minute)))
	}
	if args.Note != "" {
		p.Note = args.Note
	}
	return p
}
