package main

import (
	"context"
	"errors"
	"os"
)

// runPictures makes the pictures that the README shows: the page of a demo, in a real
// browser, in both themes.
func runPictures(ctx context.Context, p project, args []string) error {
	if len(args) > 0 {
		return errors.New("pictures takes no arguments")
	}
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	browser, err := findBrowser(true)
	if err != nil {
		return err
	}
	folder := p.at("docs", "pictures")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return p.do(ctx, step{
		dir:  "frontend",
		env:  []string{"BRIDGE_BIN=" + p.binary(), "BRIDGE_CHROMIUM=" + browser, "BRIDGE_PICTURES=" + folder},
		name: "npm", args: []string{"run", "e2e", "--", "pictures"},
	})
}
