// Package makola is the root of the module and has no code of its own. The program is cmd/makola, its packages are under
// internal, and internal/test/rules holds the rules of the source tree.
package makola
