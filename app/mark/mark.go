// Package mark draws Bridge's mark, an arch bridge on a blue tile, at any size:
// the application's icon and the tray's. Every tray icon differs from the others
// by its shape, for people who cannot tell colours apart (DSK-02).
package mark

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
)

// Badge is what the mark carries in its lower right corner.
type Badge int

// The badges.
const (
	Plain    Badge = iota // the mark alone
	Dots                  // a pill with three dots: a session or job is at work
	Circle                // a disc with an exclamation mark: you are asked for
	Triangle              // a warning sign
	Cross                 // a square with a cross: something is broken
	Broken                // an empty tile whose bridge has a gap: no connection
)

// The colours, the tile's being that of the page's own icon.
var (
	blue   = color.NRGBA{0x1f, 0x5f, 0xbf, 0xff}
	white  = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	orange = color.NRGBA{0xe0, 0x6c, 0x00, 0xff}
	amber  = color.NRGBA{0xf5, 0xb8, 0x00, 0xff}
	red    = color.NRGBA{0xc6, 0x28, 0x28, 0xff}
	black  = color.NRGBA{0x11, 0x18, 0x27, 0xff}
)

// grid is the side of the drawing; all lengths below are parts of it.
const grid = 32

// layer is one shape in one colour. Its distance is negative inside.
type layer struct {
	distance func(x, y float64) float64
	paint    color.NRGBA
}

// Draw returns the mark with a badge, side by side pixels large.
func Draw(side int, badge Badge) *image.NRGBA {
	layers := append(tile(badge), badgeLayers(badge)...)
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	scale := grid / float64(side)
	for y := range side {
		for x := range side {
			picture.SetNRGBA(x, y, shade(layers, x, y, scale))
		}
	}
	return picture
}

// samples is how many points of a pixel are looked at in each direction.
const samples = 4

// shade mixes the colours at the points of one pixel.
func shade(layers []layer, x, y int, scale float64) color.NRGBA {
	var r, g, b, a float64
	for i := range samples * samples {
		px := (float64(x) + (float64(i%samples)+0.5)/samples) * scale
		py := (float64(y) + (float64(i/samples)+0.5)/samples) * scale
		for top := len(layers) - 1; top >= 0; top-- {
			if layers[top].distance(px, py) > 0 {
				continue
			}
			paint := layers[top].paint
			alpha := float64(paint.A)
			r, g, b, a = r+float64(paint.R)*alpha, g+float64(paint.G)*alpha, b+float64(paint.B)*alpha, a+alpha
			break
		}
	}
	if a == 0 {
		return color.NRGBA{}
	}
	return color.NRGBA{uint8(math.Round(r / a)), uint8(math.Round(g / a)), uint8(math.Round(b / a)), uint8(math.Round(a / (samples * samples)))}
}

// tile is the mark itself. Broken is an outline, so that it differs also where
// colours do not.
func tile(badge Badge) []layer {
	const radius = 7
	full := box(16, 16, 16, 16, radius)
	if badge != Broken {
		return append([]layer{{full, blue}}, bridge(white, grid)...)
	}
	const edge = 2
	inside := box(16, 16, 16-edge, 16-edge, radius-edge)
	return append([]layer{{full, black}, {inside, white}}, bridge(black, 4)...)
}

// bridge is deck, pillars and arch. gap is the width that is left out around
// the middle when it is less than the whole.
func bridge(paint color.NRGBA, gap float64) []layer {
	const half = 1.25 // of a stroke
	strokes := []func(x, y float64) float64{line(4, 21, 28, 21, half), line(8, 21, 8, 25, half), line(24, 21, 24, 25, half)}
	const steps = 24
	previousX, previousY := arch(0)
	for i := 1; i <= steps; i++ {
		x, y := arch(float64(i) / steps)
		strokes = append(strokes, line(previousX, previousY, x, y, half))
		previousX, previousY = x, y
	}
	var layers []layer
	for _, stroke := range strokes {
		layers = append(layers, layer{func(x, y float64) float64 {
			if gap < grid && math.Abs(x-16) < gap/2+half {
				return 1
			}
			return stroke(x, y)
		}, paint})
	}
	return layers
}

// arch is the point at t, from 0 to 1, of the curve over the deck.
func arch(t float64) (x, y float64) {
	u := 1 - t
	at := func(a, b, c, d float64) float64 { return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d }
	return at(6, 9, 23, 26), at(21, 11, 11, 21)
}

func badgeLayers(badge Badge) []layer {
	switch badge {
	case Dots:
		return append(rimmed(box(19.5, 25.5, 11.5, 5.5, 5.5), black),
			layer{disc(13, 25.5, 2), white}, layer{disc(19.5, 25.5, 2), white}, layer{disc(26, 25.5, 2), white})
	case Circle:
		return append(rimmed(disc(22.5, 22.5, 8.5), orange), exclamation(22.5, 22.5, white)...)
	case Triangle:
		return append(rimmed(triangle(20.5, 23, 6.8), amber), exclamation(20.5, 23.2, black)...)
	case Cross:
		return append(rimmed(box(22.5, 22.5, 8.5, 8.5, 1.5), red),
			layer{line(18.5, 18.5, 26.5, 26.5, 1.6), white}, layer{line(26.5, 18.5, 18.5, 26.5, 1.6), white})
	case Plain, Broken:
	}
	return nil
}

// rimmed is a shape with a white rim, which keeps it apart from the tile.
func rimmed(shape func(x, y float64) float64, paint color.NRGBA) []layer {
	const rim = 1.5
	return []layer{{func(x, y float64) float64 { return shape(x, y) - rim }, white}, {shape, paint}}
}

func exclamation(x, y float64, paint color.NRGBA) []layer {
	return []layer{{line(x, y-4, x, y+0.5, 1.4), paint}, {disc(x, y+4.4, 1.6), paint}}
}

func disc(cx, cy, radius float64) func(x, y float64) float64 {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - radius }
}

// box is a rectangle of half sizes w and h with rounded corners.
func box(cx, cy, w, h, radius float64) func(x, y float64) float64 {
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-w+radius, math.Abs(y-cy)-h+radius
		return math.Hypot(math.Max(dx, 0), math.Max(dy, 0)) + math.Min(math.Max(dx, dy), 0) - radius
	}
}

// line is a stroke with round ends.
func line(x1, y1, x2, y2, half float64) func(x, y float64) float64 {
	return func(x, y float64) float64 {
		dx, dy := x2-x1, y2-y1
		t := math.Max(0, math.Min(1, ((x-x1)*dx+(y-y1)*dy)/(dx*dx+dy*dy)))
		return math.Hypot(x-x1-t*dx, y-y1-t*dy) - half
	}
}

// triangle points up; radius is that of the circle in it.
func triangle(cx, cy, radius float64) func(x, y float64) float64 {
	const slope = 0.8660254037844386 // the sine of 60 degrees
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx), y-cy
		return math.Max(dy-radius, dx*slope-dy/2-radius*0.8)
	}
}

// PNG encodes a picture.
func PNG(picture image.Image) ([]byte, error) {
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("encode the mark: %w", err)
	}
	return out.Bytes(), nil
}

// icoHeader and icoEntry are the bytes of a Windows icon file's folder.
const (
	icoHeader = 6
	icoEntry  = 16
)

// ICO puts PNG pictures, each square and at most 256 pixels large, into one
// Windows icon.
func ICO(sides []int, badge Badge) ([]byte, error) {
	folder := make([]byte, icoHeader, icoHeader+icoEntry*len(sides))
	binary.LittleEndian.PutUint16(folder[2:], 1) // an icon, not a cursor
	binary.LittleEndian.PutUint16(folder[4:], uint16(len(sides)))
	var pictures []byte
	for _, side := range sides {
		picture, err := PNG(Draw(side, badge))
		if err != nil {
			return nil, err
		}
		entry := make([]byte, icoEntry)
		entry[0], entry[1] = byte(side), byte(side)  // 256 is written as 0
		binary.LittleEndian.PutUint16(entry[4:], 1)  // planes
		binary.LittleEndian.PutUint16(entry[6:], 32) // bits of a pixel
		binary.LittleEndian.PutUint32(entry[8:], uint32(len(picture)))
		binary.LittleEndian.PutUint32(entry[12:], uint32(icoHeader+icoEntry*len(sides)+len(pictures)))
		folder, pictures = append(folder, entry...), append(pictures, picture...)
	}
	return append(folder, pictures...), nil
}
