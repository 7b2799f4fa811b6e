package decision

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDEC_04_OneSpellingOfAFolder(t *testing.T) {
	for _, tt := range []struct{ folder, want string }{
		{"/", "/"},
		{"//", "/"},
		{"/home/me/app", "/home/me/app"},
		{"/home/me/app/", "/home/me/app"},
		{"//home///me//app//", "/home/me/app"},
		{"/home/./me/.", "/home/me"},
		{"/home/me/../you", "/home/you"},
		{"/..", "/"},
		{"/../../etc", "/etc"},
		{"/a/b/../../..", "/"},
		{"/Home/Me", "/Home/Me"},
		{"/home/a\\b", "/home/a\\b"}, // a backslash is a letter on Unix
		{"/home/...", "/home/..."},
		{"/home/c:/x", "/home/c:/x"},
		{"/home/ünï", "/home/ünï"},

		{`C:\Work\App`, "c:/work/app"},
		{`c:/work/app`, "c:/work/app"},
		{`C:/Work\App/`, "c:/work/app"},
		{`C:\\Work\\\App\\`, "c:/work/app"},
		{`C:\Work\.\x\..\App`, "c:/work/app"},
		{`C:\`, "c:"},
		{`C:`, "c:"},
		{`C:\..`, "c:"},
		{`C:\..\..\Work`, "c:/work"},
		{`A:\Work`, "a:/work"},
		{`Z:\ÄRGER`, "z:/ärger"},
		{`1:\Work`, `/1:\Work`}, // no drive has such a letter
		{`[:\Work`, `/[:\Work`},

		{`\\Host\Share\App`, `\\host/share/app`},
		{`\\host\share\`, `\\host/share`},
		{`\\host/share/app`, `\\host/share/app`},
		{`\\Host\Share\x\..\..\..\App`, `\\host/share/app`},
		{`\\host\share\..`, `\\host/share`},
	} {
		t.Run("DEC-04 "+tt.folder, func(t *testing.T) {
			got := normalizeProject(tt.folder)
			if got != tt.want {
				t.Errorf("normalizeProject(%q) = %q, want %q", tt.folder, got, tt.want)
			}
			if again := normalizeProject(got); again != got {
				t.Errorf("a second time: %q", again)
			}
		})
	}
}

// folders draws paths with everything that normalizing looks at.
var folders = rapid.Custom(func(t *rapid.T) string {
	root := rapid.SampledFrom([]string{"/", "//", "C:", `c:\`, "Z:/", `\\`, `\\?\`, "", `\`, "1:/"}).Draw(t, "root")
	part := rapid.OneOf(
		rapid.SampledFrom([]string{".", "..", "...", "", "App", "app", "C:", "ÄÖ", "İ", "a b", "K", "?"}),
		rapid.StringN(0, 5, 20),
	)
	parts := rapid.SliceOfN(part, 0, 8).Draw(t, "parts")
	return root + strings.Join(parts, rapid.SampledFrom([]string{"/", `\`, "//"}).Draw(t, "separator"))
})

func TestDEC_04_NormalizingIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folder := folders.Draw(t, "folder")
		once := normalizeProject(folder)
		if twice := normalizeProject(once); twice != once {
			t.Fatalf("%q gives %q and then %q", folder, once, twice)
		}
		if !isAbsolute(once) {
			t.Fatalf("%q gives %q, which is not absolute", folder, once)
		}
		if windows := isWindowsPath(folder); windows != isWindowsPath(once) {
			t.Fatalf("%q gives %q: Windows before %t", folder, once, windows)
		}
		for part := range strings.SplitSeq(strings.TrimPrefix(once, share), "/") {
			if part == "." || part == ".." {
				t.Fatalf("%q gives %q", folder, once)
			}
		}
		// What is below a folder never has the folder's own spelling.
		if below := normalizeProject(once + "/x"); below == once {
			t.Fatalf("%q and what is below it are both %q", folder, once)
		}
	})
}
