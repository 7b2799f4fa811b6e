// Package chromium runs the page of a broker in Chromium, and measures it there.
package chromium

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Request is one measurement: load the page so many times, leave it alone for some seconds,
// or begin or end to count its processor time.
type Request struct {
	Do      string `json:"do"` // load, idle, begin or end
	Times   int    `json:"times,omitempty"`
	Seconds int    `json:"seconds,omitempty"`
}

// Answer is the result of a Request.
type Answer struct {
	Paints []float64 `json:"paints"` // milliseconds from the start of each load
	States int       `json:"states"` // the most requests for the state in one load
	CPU    float64   `json:"cpu"`    // milliseconds of processor time
}

// Page is a browser process with the page of one broker.
type Page struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Reader
}

// Open starts node and a browser with the page at that address. The working folder must be
// the repository's. It fails if node or Chromium is missing.
func Open(ctx context.Context, address string) (*Page, error) {
	browser := os.Getenv("BRIDGE_CHROMIUM")
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"} {
		path, _ := exec.LookPath(name) // "" for one that is not installed
		browser = cmp.Or(browser, path)
	}
	if browser == "" {
		return nil, errors.New("no Chromium or Chrome is installed; BRIDGE_CHROMIUM can name one")
	}
	p := &Page{cmd: exec.CommandContext(ctx, "node", filepath.Join("bench", "page.mjs"))}
	p.cmd.Dir, p.cmd.Stderr = "frontend", os.Stderr
	p.cmd.Env = append(os.Environ(), "BRIDGE_LAUNCH="+address, "BRIDGE_CHROMIUM="+browser)
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewReader(output)
	return p, p.cmd.Start()
}

// Ask measures and returns the result. It fails if the browser has ended.
func (p *Page) Ask(request Request) (answer Answer, err error) {
	if err := json.NewEncoder(p.input).Encode(request); err != nil {
		return answer, err
	}
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("the browser has ended: %w", err)
	}
	return answer, json.Unmarshal(line, &answer)
}

// Close ends the browser. It fails if the browser had failed before.
func (p *Page) Close() error {
	_ = p.input.Close() // then the script ends
	return p.cmd.Wait()
}
