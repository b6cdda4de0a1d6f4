#!/bin/sh
# Builds the image makola:VERSION of deploy/Dockerfile with docker or buildah: scripts/image.sh [VERSION]. IMAGE_BUILDER chooses
# the builder, BUILDAH_FLAGS adds flags of buildah. The image's files are put together in build/image, or in IMAGE_TREE.
set -eu
cd "$(dirname "$0")/.."
version=${1:-dev}
tree=${IMAGE_TREE:-build/image}
certificates=/etc/ssl/certs/ca-certificates.crt
[ -f "$certificates" ] || { echo "the image needs the certificates of this machine: install ca-certificates" >&2; exit 1; }

rm -rf "$tree"
install -d -m 0755 "$tree/usr/bin" "$tree/etc/ssl/certs" "$tree/var/lib"
install -d -m 0700 "$tree/var/lib/makola"
install -d -m 1777 "$tree/tmp"
install -m 0644 "$certificates" "$tree/etc/ssl/certs/"
CGO_ENABLED=0 "${GO:-go}" build -trimpath -buildvcs=false -pgo=cmd/makola/makola.pgo \
	-ldflags "-s -w -X github.com/makola/makola/internal/cli.version=$version" -o "$tree/usr/bin/makola" ./cmd/makola

tag=makola:$(echo "$version" | tr '~+' '--') # a tag of an image has neither

# The format is Docker's: OCI's has no health check, and buildah drops it there.
builder=${IMAGE_BUILDER:-}
if [ -z "$builder" ]; then
	builder=buildah
	! docker info >/dev/null 2>&1 || builder=docker
fi
case "$builder" in
docker) docker build -q -f deploy/Dockerfile -t "$tag" "$tree" ;;
buildah) buildah ${BUILDAH_FLAGS:-} bud -q --format docker --isolation chroot -f deploy/Dockerfile -t "$tag" "$tree" ;;
esac
