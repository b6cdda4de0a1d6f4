#!/bin/sh
# Finds the programs that tests of deploy/ run, or as root on Debian installs them: haproxy and nginx before nodes that restart,
# promtool for the alert rules, buildah for the image, Patroni and etcd for the cluster of deploy/ha.
set -eu
program() { # what a package is needed for
	case "$1" in prometheus) echo promtool ;; etcd-server) echo etcd ;; *) echo "$1" ;; esac
}
missing=
for package in haproxy nginx prometheus buildah etcd-server patroni python3-etcd; do
	command -v "$(program $package)" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing for the tests of deploy/" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
for package in $missing; do
	command -v "$(program "$package")" >/dev/null 2>&1 || { echo "the tests of deploy/ need $(program "$package"): install $package" >&2; exit 1; }
done
