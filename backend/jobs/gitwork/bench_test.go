package gitwork

import (
	"fmt"
	"path/filepath"
	"testing"

	"bridge/backend/platform/sandbox"
)

// BenchmarkDiff is what a look at a job costs: once with the floor, once without.
func BenchmarkDiff(b *testing.B) {
	for _, floor := range []bool{false, true} {
		b.Run(fmt.Sprintf("floor=%t", floor), func(b *testing.B) {
			if err := sandbox.Available(); err != nil && floor {
				b.Skip(err)
			}
			w := newWorldWith(b, floor)
			for n := range 200 {
				w.write(w.main, filepath.Join("many", fmt.Sprintf("%d.txt", n)), "a line\n")
			}
			w.commit(w.main, "many")
			tree := w.add(w.main)
			w.write(tree.Path, "a.txt", "changed\n")
			recorded, err := w.g.Describe(w.ctx(), tree)
			if err != nil {
				b.Fatal(err)
			}
			g := w.g.Pin(&recorded)
			for b.Loop() {
				if _, err := g.Diff(b.Context(), tree.Path, tree.BaseTree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHead is one git that only reads.
func BenchmarkHead(b *testing.B) {
	for _, floor := range []bool{false, true} {
		b.Run(fmt.Sprintf("floor=%t", floor), func(b *testing.B) {
			if err := sandbox.Available(); err != nil && floor {
				b.Skip(err)
			}
			w := newWorldWith(b, floor)
			for b.Loop() {
				if _, err := w.g.Head(b.Context(), w.main); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
