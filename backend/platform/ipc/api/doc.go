// Package api is what the two ends of the local link say to each other: the types
// of each operation, a file for each noun, and one table of the operations with the
// roles that may call them (JOB-11). How it gets there is ipc's business.
package api
