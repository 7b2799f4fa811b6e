// Package api defines the messages of the local link: the types of each operation,
// one file per noun. One table lists the operations with the roles that may call
// them (JOB-11). Package ipc does the transport.
package api
