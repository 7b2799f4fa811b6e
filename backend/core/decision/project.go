package decision

import "strings"

// normalizeProject returns the one spelling of a project folder: forward
// slashes, no doubled or trailing ones, no "." or ".." parts, and lower case
// when the folder has a Windows spelling (a drive letter or a \\host share),
// because Windows ignores case (seed 2.2, DEC-04). A share keeps its two leading
// backslashes, so that it stays apart from a Unix path and normalizes to itself.
// It is pure: the same folder gives the same text on every system.
func normalizeProject(folder string) string {
	root, fixed := "/", 0 // what stands in front, and how many parts ".." cannot leave
	if isWindowsPath(folder) {
		root, fixed = "", 1 // the drive
		if strings.HasPrefix(folder, share) {
			root, fixed = share, 2 // the host and its share
		}
		folder = strings.ToLower(strings.ReplaceAll(folder, `\`, "/"))
	}
	var kept []string
	for part := range strings.SplitSeq(folder, "/") {
		switch part {
		case "", ".":
		case "..":
			if len(kept) > fixed {
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, part)
		}
	}
	return root + strings.Join(kept, "/")
}

// share begins the Windows spelling of a folder on another host.
const share = `\\`

func isAbsolute(folder string) bool {
	return strings.HasPrefix(folder, "/") || isWindowsPath(folder)
}

// isWindowsPath reports whether folder is spelled `C:\…`, `C:/…` or `\\host\…`.
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
