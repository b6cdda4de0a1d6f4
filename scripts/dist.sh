#!/bin/sh
# Builds a release in build/dist: scripts/dist.sh VERSION. Linux gets the server and its packages; macOS and Windows get the same
# program for its commands. SHA256SUMS lists every file. DIST_TARGETS names fewer targets, such as "linux/amd64".
set -eu
cd "$(dirname "$0")/.."
version=$1 folder=build/dist
rm -rf "$folder"
mkdir -p "$folder"
for target in ${DIST_TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}; do
	system=${target%/*} architecture=${target#*/} ending=
	[ "$system" != windows ] || ending=.exe
	program="$folder/makola-$version-$system-$architecture$ending"
	CGO_ENABLED=0 GOOS=$system GOARCH=$architecture "${GO:-go}" build -trimpath -pgo=cmd/makola/makola.pgo \
		-ldflags "-s -w -X github.com/makola/makola/internal/cli.version=$version" -o "$program" ./cmd/makola
	[ "$system" != linux ] || scripts/package.sh "$program" "$version" "$architecture" "$folder" >/dev/null
done
(cd "$folder" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
