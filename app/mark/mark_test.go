package mark

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"os"
	"testing"
)

var badges = []Badge{Plain, Dots, Circle, Triangle, Cross, Broken}

// silhouette is the picture in grey steps: what is left where colours cannot be
// told apart.
func silhouette(side int, badge Badge) []int {
	picture := Draw(side, badge)
	grey := make([]int, 0, side*side)
	for y := range side {
		for x := range side {
			c := picture.NRGBAAt(x, y)
			light := (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000
			grey = append(grey, (light*int(c.A)+128*(255-int(c.A)))/255)
		}
	}
	return grey
}

func TestDSK_02_IconsDifferWithoutColour(t *testing.T) {
	const side, clearly = 22, 40 // pixels that differ by more than a third of the range
	for i, badge := range badges {
		for _, other := range badges[i+1:] {
			differ := 0
			a, b := silhouette(side, badge), silhouette(side, other)
			for at := range a {
				if d := a[at] - b[at]; d > 85 || d < -85 {
					differ++
				}
			}
			if differ < clearly {
				t.Errorf("icons %d and %d differ in %d of %d pixels only", badge, other, differ, side*side)
			}
		}
	}
}

// The committed icon of the packages is the mark as it is drawn.
func TestDSK_05_ThePackagesIconIsTheMark(t *testing.T) {
	want, err := PNG(Draw(256, Plain))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../build/appicon.png")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("build/appicon.png is not what Draw draws (%v): run `go run ./build icon`", err)
	}
}

func TestICOHoldsItsPictures(t *testing.T) {
	icon, err := ICO([]int{16, 32, 256}, Triangle)
	if err != nil {
		t.Fatal(err)
	}
	for i, side := range []int{16, 32, 256} {
		entry := icon[icoHeader+i*icoEntry:]
		size, offset := binary.LittleEndian.Uint32(entry[8:]), binary.LittleEndian.Uint32(entry[12:])
		picture, err := png.Decode(bytes.NewReader(icon[offset : offset+size]))
		if err != nil || picture.Bounds().Dx() != side || entry[0] != byte(side) {
			t.Errorf("picture %d: %v, side byte %d, want %d", i, err, entry[0], side)
		}
	}
}
