#!/bin/sh
# Finds, or as root on Debian installs, the languages in which the guides print a sample: the tests run each of them.
set -eu
missing=
for pair in node:nodejs python3:python3 php:php-cli; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
# The samples in PHP call curl, which Debian packs apart.
curl='exit(function_exists("curl_init") ? 0 : 1);'
php -r "$curl" 2>/dev/null || missing="$missing php-curl"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing for the samples of the guides" >&2
	# shellcheck disable=SC2086
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
for program in node python3 php; do
	command -v "$program" >/dev/null 2>&1 || { echo "the samples of the guides need $program: install$missing" >&2; exit 1; }
done
php -r "$curl" || { echo "the samples of the guides need PHP with curl: install php-curl" >&2; exit 1; }
