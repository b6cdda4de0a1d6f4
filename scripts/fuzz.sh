#!/bin/sh
# Runs each fuzz test of the tree for the time given (default 10s).
set -eu
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
	package=./$(dirname "${file#./}")
	sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file" | while read -r name; do
		echo "== $package $name"
		go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "$time"
	done
done
