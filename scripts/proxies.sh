#!/bin/sh
# Finds haproxy and nginx, or as root on Debian installs them: a test restarts nodes behind each, with the files of deploy/.
set -eu
missing=
for program in haproxy nginx; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing for the test of a rolling restart" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
for program in haproxy nginx; do
	command -v "$program" >/dev/null 2>&1 || { echo "the test of a rolling restart needs $program: install it" >&2; exit 1; }
done
