#!/bin/sh
# Finds the programs that tests of deploy/ run, or as root on Debian installs them: haproxy, nginx and PgBouncer in front of nodes,
# promtool for the alert rules, buildah for the image, rpm for the package, Patroni and etcd for the cluster of deploy/ha.
set -eu
there() { # whether what a package is needed for is here
	case "$1" in
	pgbouncer) command -v pgbouncer || command -v /usr/sbin/pgbouncer ;;
	prometheus) command -v promtool ;;
	etcd-server) command -v etcd ;;
	python3-etcd) /usr/bin/python3 -c 'import etcd' ;;
	*) command -v "$1" ;;
	esac >/dev/null 2>&1
}
missing=
for package in haproxy nginx pgbouncer prometheus buildah rpm etcd-server patroni python3-etcd curl; do
	there "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing for the tests of deploy/" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
for package in $missing; do
	there "$package" || { echo "the tests of deploy/ need $package: install it" >&2; exit 1; }
done
