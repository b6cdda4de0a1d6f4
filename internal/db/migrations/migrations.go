// Package migrations holds the tables of the house: one numbered file for each
// owner, written for SQLite and translated by package db for PostgreSQL. The
// first line names the owner, the only package that writes these tables. A file
// that a release has shipped never changes; what comes later is a new file.
package migrations

import "embed"

// Files are the migrations, NNNN_owner.sql.
//
//go:embed *.sql
var Files embed.FS
