package inventory

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// FindSnapshot returns the folder of a full snapshot by a person's input: a path, a path
// relative to the home, or a name in the folder of snapshots or the beginning of its name,
// of its short name or of its id; "" and "latest" mean the newest. It fails with NotFound if none
// matches, and with Ambiguous if several do.
func FindSnapshot(home config.Home, typed string) (string, error) {
	return findSet(home.Dir(), typed, home.Backups(), SnapshotName, "there is no snapshot yet: make one with `bridge doctor --backup`")
}

// FindMessages finds a backup of messages in the same way, and fails in the same way.
func FindMessages(home config.Home, typed string) (string, error) {
	return findSet(home.Dir(), typed, home.MessageBackups(), MessagesName, "there is no backup of messages: `bridge config set backups.auto true` lets the broker make them")
}

// findSet returns the folder of a set by a person's input. It fails with NotFound, with
// the message none if there is no set at all.
func findSet(dir, typed, folder string, name *regexp.Regexp, none string) (string, error) {
	if typed == "" || typed == "latest" {
		found, err := Sets(folder, name)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", bridge.Errorf(bridge.NotFound, "%s", none)
		}
		return filepath.Join(folder, found[0].Path), nil
	}
	for _, candidate := range []string{typed, JoinHome(dir, typed), JoinHome(folder, typed)} {
		if info, err := os.Stat(candidate); err == nil && info.IsDir() {
			return filepath.Abs(candidate)
		}
	}
	found, err := Sets(folder, name)
	if err != nil {
		return "", err
	}
	matching := slices.DeleteFunc(found, func(set Set) bool {
		_, id := partsOf(set.Path)
		return !strings.HasPrefix(set.Path, typed) && !strings.HasPrefix(ShortName(set.Path), typed) && !strings.HasPrefix(id, typed)
	})
	switch len(matching) {
	case 0:
		return "", bridge.Errorf(bridge.NotFound, "there is no snapshot %s: `bridge backups` lists them", typed)
	case 1:
		return filepath.Join(folder, matching[0].Path), nil
	default:
		return "", bridge.Errorf(bridge.Ambiguous, "%s is the beginning of %s: type more of it", typed, bridge.Counted(len(matching), "snapshot"))
	}
}

// idChars is how much of a set's id is part of its short name.
const idChars = 4

// ShortName returns the name of a set for people: the minute when it was made, by this PC's
// clock, and the beginning of its id, such as 2026-11-27-1426-e14b.
func ShortName(set string) string {
	made, id := partsOf(set)
	if id == "" {
		return set
	}
	return made.Format("2006-01-02-1504") + "-" + id[:min(len(id), idChars)]
}

// partsOf returns when a set was made, and its id; "" if its name has another form.
func partsOf(set string) (made time.Time, id string) {
	parts := strings.SplitN(path.Base(set), "-", 3)
	if len(parts) < 3 {
		return time.Time{}, ""
	}
	millis, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return time.Time{}, ""
	}
	return time.UnixMilli(millis), parts[2]
}
