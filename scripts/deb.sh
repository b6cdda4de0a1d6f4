#!/bin/sh
# Packs a built program as a Debian package: scripts/deb.sh PROGRAM VERSION FILE.deb. It needs dpkg-deb, which every Debian has.
# DEB_ARCH names another architecture than this machine's, DEB_COMPRESSION another way than xz.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
program=$1 version=$2 file=$3
case "$version" in [0-9]*) ;; v[0-9]*) version=${version#v} ;; *) version="0.0.0~$version" ;; esac
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

put() { install -D -m "$1" "$2" "$tree/$3"; }
put 0755 "$program" usr/bin/makola
put 0644 "$here/deploy/makola.service" lib/systemd/system/makola.service
put 0600 "$here/deploy/deb/makola.env" etc/makola/makola.env
for name in alerts.yml dashboard.json haproxy.cfg nginx.conf; do
	put 0644 "$here/deploy/$name" "usr/share/doc/makola/$name"
done
gzip -9n <"$here/deploy/makola.1" >"$tree/makola.1.gz"
put 0644 "$tree/makola.1.gz" usr/share/man/man1/makola.1.gz
rm "$tree/makola.1.gz"
put 0644 "$here/docs/operations.md" usr/share/doc/makola/operations.md
put 0644 "$here/CHANGELOG.md" usr/share/doc/makola/changelog.md
put 0644 "$here/LICENSE" usr/share/doc/makola/copyright
for name in postinst prerm postrm; do
	put 0755 "$here/deploy/deb/$name" "DEBIAN/$name"
done
echo /etc/makola/makola.env >"$tree/DEBIAN/conffiles"
cat >"$tree/DEBIAN/control" <<END
Package: makola
Version: $version
Architecture: ${DEB_ARCH:-$(dpkg --print-architecture)}
Maintainer: Makola maintainers <maintainers@makola.example>
Section: net
Priority: optional
Recommends: ca-certificates
Suggests: postgresql, haproxy | nginx, prometheus
Description: mobile money, bank transfers, airtime and messages behind one interface
 Collects and sends mobile money in Ghana, sends bank transfers, sells airtime and
 data packages, and sends SMS and one-time passwords, with a ledger of its own.
END
chmod 0755 "$tree"
dpkg-deb --root-owner-group -Z"${DEB_COMPRESSION:-xz}" --build "$tree" "$file" >/dev/null
echo "$file"
