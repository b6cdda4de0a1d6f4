#!/bin/sh
# Packs a built program for Linux as a Debian package and as an RPM, by deploy/nfpm.yaml:
# scripts/package.sh PROGRAM VERSION ARCHITECTURE FOLDER, where the architecture is Go's name for it (amd64, arm64). It prints the paths of both.
set -eu
program=$(realpath "$1") folder=$(realpath "$4")
cd "$(dirname "$0")/.."
manual=$(mktemp)
trap 'rm -f "$manual"' EXIT
gzip -9n <deploy/makola.1 >"$manual"
export MAKOLA_PROGRAM="$program" MAKOLA_VERSION="$2" MAKOLA_ARCH="$3" MAKOLA_MANUAL="$manual"
for packager in deb rpm; do
	"${GO:-go}" run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 package -f deploy/nfpm.yaml -p "$packager" -t "$folder/" |
		sed -n 's/^created package: //p'
done
