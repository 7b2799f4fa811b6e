package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// licensed is a piece of others' work that is inside the product.
type licensed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Licence string `json:"licence"` // its short name
	Text    int    `json:"text"`    // its place among the texts
}

// licences is what the page shows of them: the file assets/licences.json of the
// built page. Equal texts are kept once.
type licences struct {
	Go    []licensed `json:"go"`   // modules in the binaries, of any system
	Page  []licensed `json:"page"` // packages in the page's bundle
	Texts []string   `json:"texts"`
}

// writeLicences collects the licences of everything that is built into the
// product: of the Go modules that the commands are linked from, out of the
// module cache, and of the npm packages that the bundler says it took. It does
// nothing while neither has changed.
func writeLicences(ctx context.Context, p project) error {
	sum, err := p.sumOf("go.sum", "build/licences.go", "frontend/dist/assets/packages.json")
	if err != nil {
		return err
	}
	stamp, target := p.at(".cache", "licences.sum"), p.at("frontend", "dist", "assets", "licences.json")
	known, err := os.ReadFile(stamp)
	if _, missing := os.Stat(target); missing == nil && err == nil && string(known) == sum {
		return nil
	}
	var all licences
	if err := all.addModules(ctx, p); err != nil {
		return err
	}
	if err := all.addPackages(p.at("frontend", "dist", "assets", "packages.json")); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(target, text, 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(stamp), 0o755); err != nil {
		return err
	}
	p.say("the licences of %d Go modules and %d npm packages are in the page", len(all.Go), len(all.Page))
	return os.WriteFile(stamp, []byte(sum), 0o644)
}

// sumOf is a checksum of files of the checkout.
func (p project) sumOf(paths ...string) (string, error) {
	hash := sha256.New()
	for _, path := range paths {
		data, err := os.ReadFile(p.at(filepath.FromSlash(path)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// addModules adds the modules that any command is linked from on any system, and
// Go itself.
func (l *licences) addModules(ctx context.Context, p project) error {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}}` + "\t" + `{{.Version}}` + "\t" + `{{.Dir}}{{end}}{{end}}`
	found := map[string]bool{}
	for _, system := range []string{"linux", "windows", "darwin"} {
		list := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-f", format, "./cmd/...")
		list.Dir, list.Stderr, list.Env = p.root, p.output, append(os.Environ(), "GOOS="+system)
		output, err := list.Output()
		if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		for line := range strings.Lines(string(output)) {
			if line = strings.TrimSpace(line); line != "" {
				found[line] = true
			}
		}
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	lines := []string{"Go, its standard library\t" + strings.TrimPrefix(runtime.Version(), "go") + "\t" + strings.TrimSpace(string(root))}
	for line := range found {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		parts := strings.Split(line, "\t")
		text, err := licenceText(parts[2])
		if err != nil {
			return fmt.Errorf("%s: %w", parts[0], err)
		}
		l.Go = append(l.Go, licensed{parts[0], parts[1], licenceName(text), l.place(text)})
	}
	return nil
}

// addPackages adds what the bundler wrote about the packages it took.
func (l *licences) addPackages(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var packages []struct{ Name, Version, Licence, Folder string }
	if err := json.Unmarshal(data, &packages); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, row := range packages {
		text, err := licenceText(filepath.Join(filepath.Dir(path), "..", "..", filepath.FromSlash(row.Folder)))
		if err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		l.Page = append(l.Page, licensed{row.Name, row.Version, row.Licence, l.place(text)})
	}
	return nil
}

// place returns where the text is among the texts, and adds it where it is new.
func (l *licences) place(text string) int {
	at := slices.Index(l.Texts, text)
	if at < 0 {
		l.Texts = append(l.Texts, text)
		at = len(l.Texts) - 1
	}
	return at
}

// licenceText reads the licence that lies in a folder.
func licenceText(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if !entry.IsDir() && (strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING")) {
			data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			return strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n")), err
		}
	}
	return "", fmt.Errorf("no licence lies in %s: look it up before this is shipped", dir)
}

// licenceName recognizes a licence by words that only it has.
func licenceName(text string) string {
	normalized := strings.ToLower(strings.Join(strings.Fields(text), " ")) // some write their first word in capitals
	has := func(phrase string) bool { return strings.Contains(normalized, strings.ToLower(phrase)) }
	switch {
	case has("Apache License Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License Version 2.0"), has("Mozilla Public License, version 2.0"):
		return "MPL-2.0"
	case has("Redistribution and use in source and binary forms") && has("either the name"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission is hereby granted, free of charge, to any person obtaining a copy"):
		return "MIT"
	case has("Permission to use, copy, modify, and/or distribute"), has("Permission to use, copy, modify, and distribute"):
		return "ISC"
	case has("This software is provided 'as-is', without any express or implied warranty"):
		return "Zlib"
	case has("This is free and unencumbered software released into the public domain"):
		return "Unlicense"
	}
	return "see its text"
}
