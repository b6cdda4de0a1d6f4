#!/bin/sh
# Finds promtool, or as root on Debian installs Prometheus for it: a test plays the rules of deploy/alerts.yml.
set -eu
command -v promtool >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing promtool for the test of the alert rules" >&2
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null
fi
command -v promtool >/dev/null 2>&1 || { echo "the test of the alert rules needs promtool: install prometheus" >&2; exit 1; }
