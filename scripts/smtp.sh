#!/bin/sh
# Finds a real mail server for tests, and prints its path: exim4 of Debian's package exim4-daemon-light. As root on Debian it installs
# the package, whose own service is not started. Tests start the server themselves, on loopback, with a configuration of their own.
set -eu

say() { echo "smtp.sh: $*" >&2; }

find_exim() {
	for path in /usr/sbin/exim4 /usr/sbin/exim /usr/local/sbin/exim; do
		if [ -x "$path" ]; then
			echo "$path"
			return 0
		fi
	done
	return 1
}

if find_exim; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	say "exim4 is not installed; installing it with apt-get"
	export DEBIAN_FRONTEND=noninteractive
	# Without a policy the package would start a mail server of this machine.
	policy=/usr/sbin/policy-rc.d
	made=
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
		made=$policy
	fi
	{ apt-get update -q && apt-get install -y -q --no-install-recommends exim4-daemon-light; } >&2 || say "apt-get could not install exim4-daemon-light"
	[ -z "$made" ] || rm -f "$made"
	if find_exim; then exit 0; fi
fi
say "no mail server is found; Debian or Ubuntu: sudo apt-get install exim4-daemon-light"
exit 1
