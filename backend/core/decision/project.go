package decision

import "strings"

// normalizeProject returns the normal form of a project folder: forward slashes, no
// double or trailing ones, no "." or ".." parts. A Windows path (a drive letter or a
// \\host share) is in lower case, because Windows ignores case (seed 2.2, DEC-04). A
// share keeps its two leading backslashes, so that it differs from a Unix path and
// normalizes to itself. The function is pure: the result is the same on every system.
func normalizeProject(folder string) string {
	root, fixed := "/", 0 // the prefix, and how many parts ".." cannot remove
	if isWindowsPath(folder) {
		root, fixed = "", 1 // the drive
		if strings.HasPrefix(folder, share) {
			root, fixed = share, 2 // the host and its share
		}
		folder = strings.ToLower(strings.ReplaceAll(folder, `\`, "/"))
	}
	var normalized []string
	for part := range strings.SplitSeq(folder, "/") {
		switch part {
		case "", ".":
		case "..":
			if len(normalized) > fixed {
				normalized = normalized[:len(normalized)-1]
			}
		default:
			normalized = append(normalized, part)
		}
	}
	return root + strings.Join(normalized, "/")
}

// share is the prefix of a Windows path to another host.
const share = `\\`

func isAbsolute(folder string) bool {
	return strings.HasPrefix(folder, "/") || isWindowsPath(folder)
}

// isWindowsPath reports whether folder has the form `C:\…`, `C:/…` or `\\host\…`.
func isWindowsPath(folder string) bool {
	if strings.HasPrefix(folder, share) {
		return true
	}
	if len(folder) < 2 || folder[1] != ':' {
		return false
	}
	letter := folder[0] | 0x20
	return letter >= 'a' && letter <= 'z' && (len(folder) == 2 || folder[2] == '\\' || folder[2] == '/')
}
