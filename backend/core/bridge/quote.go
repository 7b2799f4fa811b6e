package bridge

import "strings"

// PlainRune reports whether every shell takes r literally at any position.
func PlainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:+,@%", r)
}

// QuotePOSIX quotes argument so that every POSIX shell reads it back unchanged.
func QuotePOSIX(argument string) string {
	if argument != "" && !strings.ContainsFunc(argument, func(r rune) bool { return !PlainRune(r) }) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}
