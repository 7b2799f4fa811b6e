package decision

import "strings"

// NormalizeProject returns the one spelling of a project folder: forward
// slashes, no doubled or trailing ones, no "." or ".." parts, and lower case
// when the folder has a Windows spelling (a drive letter or a \\host share),
// because Windows ignores case (seed 2.2, DEC-04). It is pure: the same folder
// gives the same text on every system.
func NormalizeProject(folder string) string {
	windows := isWindowsPath(folder)
	if windows {
		folder = strings.ToLower(strings.ReplaceAll(folder, `\`, "/"))
	}
	var kept []string
	for part := range strings.SplitSeq(folder, "/") {
		switch part {
		case "", ".":
		case "..":
			if len(kept) > 0 {
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, part)
		}
	}
	joined := strings.Join(kept, "/")
	switch {
	case windows && strings.HasPrefix(folder, "//"):
		return "//" + joined
	case windows:
		return joined
	default:
		return "/" + joined
	}
}

func isAbsolute(folder string) bool {
	return strings.HasPrefix(folder, "/") || isWindowsPath(folder)
}

// isWindowsPath reports whether folder is spelled `C:\…`, `C:/…` or `\\host\…`.
func isWindowsPath(folder string) bool {
	if strings.HasPrefix(folder, `\\`) {
		return true
	}
	if len(folder) < 2 || folder[1] != ':' {
		return false
	}
	letter := folder[0] | 0x20
	return letter >= 'a' && letter <= 'z' && (len(folder) == 2 || folder[2] == '\\' || folder[2] == '/')
}
