package connects_test

import "unsafe"

func addressOf(data []byte) uintptr { return uintptr(unsafe.Pointer(&data[0])) }
