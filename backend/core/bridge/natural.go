package bridge

import "cmp"

// CompareNames orders names naturally: it compares numbers in them by value, so that
// api-9 precedes api-54, and the rest by bytes.
func CompareNames(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if !isDigit(a[i]) || !isDigit(b[j]) {
			if a[i] != b[j] {
				return cmp.Compare(a[i], b[j])
			}
			i, j = i+1, j+1
			continue
		}
		number, other := digits(a[i:]), digits(b[j:])
		i, j = i+len(number), j+len(other)
		number, other = withoutZeros(number), withoutZeros(other)
		if order := cmp.Or(cmp.Compare(len(number), len(other)), cmp.Compare(number, other)); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), cmp.Compare(a, b))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits returns the number at the start of s.
func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

func withoutZeros(number string) string {
	for len(number) > 1 && number[0] == '0' {
		number = number[1:]
	}
	return number
}
