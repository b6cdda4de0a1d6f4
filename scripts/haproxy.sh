#!/bin/sh
# Finds haproxy, or as root on Debian installs it: a test restarts nodes behind it with deploy/haproxy.cfg.
set -eu
command -v haproxy >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing haproxy for the test of a rolling restart" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends haproxy >/dev/null
fi
command -v haproxy >/dev/null 2>&1 || { echo "the test of a rolling restart needs haproxy: install it" >&2; exit 1; }
