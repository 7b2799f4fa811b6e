package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLicencesAreKnownByTheirWords(t *testing.T) {
	for want, text := range map[string]string{
		"Apache-2.0":   "Apache License\n   Version 2.0, January 2004",
		"MIT":          "Permission is hereby granted, free of charge, to any person\nobtaining a copy of",
		"BSD-3-Clause": "Redistribution and use in source and binary forms ... Neither the name of",
		"BSD-2-Clause": "Redistribution and use in source\nand binary forms",
		"ISC":          "Permission to use, copy, modify, and/or distribute this software",
		"see its text": "All rights reserved.",
	} {
		if got := licenceName(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if got := licenceName("PERMISSION is hereby granted, free of charge, to any person obtaining a copy"); got != "MIT" {
		t.Errorf("an MIT licence whose first word is in capitals is %s", got)
	}
}

func TestALicenceLiesBesideTheCode(t *testing.T) {
	dir := t.TempDir()
	if _, err := licenceText(dir); err == nil {
		t.Error("a folder without a licence has one")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("one\r\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := licenceText(dir); err != nil || text != "one\ntwo" {
		t.Errorf("%q, %v", text, err)
	}
	var all licences
	if a, b, c := all.place("x"), all.place("y"), all.place("x"); a != 0 || b != 1 || c != 0 {
		t.Errorf("places %d %d %d", a, b, c)
	}
}
