package check

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// SizePoint is the size of the home at one time.
type SizePoint struct {
	At    int64            `json:"at"`    // Unix milliseconds
	Total int64            `json:"total"` // bytes
	Parts map[string]int64 `json:"parts"` // bytes by file or folder directly in the home, with side files
}

// The record of sizes is a separate log, one JSON line for each point.
const (
	sizesName = "sizes.jsonl"
	// keptSizes is how many days are kept: more than a year.
	keptSizes = 400
	// mostSizes is how many lines the record may have before older points of each day,
	// and the oldest days, are removed.
	mostSizes = 2 * keptSizes
)

// NextSizes returns when the next point of the record is due: a day after the last one,
// or at once without one.
func NextSizes(home config.Home) time.Time {
	points, err := readSizes(home)
	if err != nil || len(points) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(points[len(points)-1].At).Add(24 * time.Hour)
}

// RecordSizes measures the home, which must exist, and adds a point to the record. It
// reads no file's content. It fails if a folder is unreadable or the record cannot be
// written.
func RecordSizes(ctx context.Context, worker lease.Worker) error {
	point := SizePoint{At: worker.Now().UnixMilli(), Parts: map[string]int64{}}
	err := inventory.Walk(ctx, worker.Home.Dir(), func(path string, entry fs.DirEntry) error {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() { // it may have vanished meanwhile
			point.Total += info.Size()
			point.Parts[partOf(path)] += info.Size()
		}
		return nil
	})
	if err != nil {
		return err
	}
	line, err := json.Marshal(point)
	if err != nil {
		return err
	}
	if err := disk.MakeDir(worker.Home.Logs()); err != nil {
		return err
	}
	if err := worker.Files().AppendSync(sizesFile(worker.Home), line, disk.PrivateFile); err != nil {
		return err
	}
	return boundSizes(worker)
}

// partOf returns the part that a file counts to: the file or folder directly in the home,
// or the database of a side file.
func partOf(path string) string {
	top, _, _ := strings.Cut(path, "/")
	for _, suffix := range inventory.SideFiles {
		if base, isSide := strings.CutSuffix(top, suffix); isSide && inventory.IsDatabase(base) {
			return base
		}
	}
	return top
}

// boundSizes rewrites the record if it has grown long.
func boundSizes(worker lease.Worker) error {
	points, err := readSizes(worker.Home)
	if err != nil || len(points) <= mostSizes {
		return err
	}
	var buffer bytes.Buffer
	for _, point := range daily(points) {
		line, err := json.Marshal(point)
		if err != nil {
			return err
		}
		buffer.Write(append(line, '\n'))
	}
	return worker.Files().WriteAtomic(sizesFile(worker.Home), buffer.Bytes(), disk.PrivateFile)
}

// Sizes returns the record, oldest first: the last point of each day. It fails if the
// record is unreadable.
func Sizes(home config.Home) ([]SizePoint, error) {
	points, err := readSizes(home)
	return daily(points), err
}

// daily returns the last point of each of the newest days (UTC).
func daily(points []SizePoint) []SizePoint {
	latest := []SizePoint{}
	day := func(p SizePoint) string { return time.UnixMilli(p.At).UTC().Format(time.DateOnly) }
	for _, point := range points {
		if last := len(latest) - 1; last >= 0 && day(latest[last]) == day(point) {
			latest[last] = point
		} else {
			latest = append(latest, point)
		}
	}
	return latest[max(0, len(latest)-keptSizes):]
}

// readSizes returns every point. It skips unreadable lines, such as one left by a crash.
func readSizes(home config.Home) ([]SizePoint, error) {
	data, err := disk.ReadLimited(sizesFile(home), maxJSONBytes)
	if inventory.IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var points []SizePoint
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var point SizePoint
		if json.Unmarshal(lines.Bytes(), &point) == nil && point.At > 0 && point.Parts != nil {
			points = append(points, point)
		}
	}
	return points, lines.Err()
}

func sizesFile(home config.Home) string { return filepath.Join(home.Logs(), sizesName) }
