#!/bin/sh
# The Chromium of the browser tests: prints its path. Where there is none it is installed (as root on Debian), or what is
# missing is said.
#
#   scripts/chromium.sh
set -eu

say() { echo "chromium.sh: $*" >&2; }

find_it() {
	for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
		if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
			command -v "$name"
			return 0
		fi
	done
	return 1
}

if find_it; then exit 0; fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	say "Chromium is not installed; installing it with apt-get"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; } >&2 || {
		say "apt-get could not install the package chromium"
		exit 1
	}
	if find_it; then exit 0; fi
fi

say "Chromium is missing: none of chromium, chromium-browser, google-chrome is in PATH.
  Debian or Ubuntu: sudo apt-get install chromium
  macOS:            brew install --cask chromium
  or name one:      export CHROMIUM=/path/to/it"
exit 1
