#!/bin/sh
# A private PostgreSQL for tests and benchmarks.
#
#   scripts/postgres.sh start             starts it (idempotent) and prints its URL
#   scripts/postgres.sh --durable start   a second cluster with full durability, for benchmarks
#   scripts/postgres.sh [--durable] url   prints the URL of the running cluster
#   scripts/postgres.sh [--durable] stop  stops it
#
# The test cluster runs with fsync off: it is thrown away, never trusted. It
# listens on loopback only, on a free port, and lives in a cache folder of the
# user that runs it. As root it runs as the user postgres (or nobody), because
# PostgreSQL refuses root. Only the URL goes to standard output.
set -eu

say() { echo "postgres.sh: $*" >&2; }
die() { say "$*"; exit 1; }

kind=test
action=
for word in "$@"; do
	case $word in
	--durable) kind=durable ;;
	start | stop | url) action=$word ;;
	*) die "unknown word '$word'; usage: scripts/postgres.sh [--durable] start|stop|url" ;;
	esac
done
[ -n "$action" ] || die "usage: scripts/postgres.sh [--durable] start|stop|url"

# The newest PostgreSQL of Debian's layout, else whatever the PATH has.
find_binaries() {
	for dir in $(ls -d /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin 2>/dev/null | sort -Vr); do
		if [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ]; then
			echo "$dir"
			return 0
		fi
	done
	if command -v initdb >/dev/null 2>&1 && command -v pg_ctl >/dev/null 2>&1; then
		dirname "$(command -v pg_ctl)"
		return 0
	fi
	return 1
}

# Who runs the server: the caller, or an unprivileged user when the caller is root.
owner=
if [ "$(id -u)" = 0 ]; then
	for candidate in postgres nobody; do
		if id "$candidate" >/dev/null 2>&1; then
			owner=$candidate
			break
		fi
	done
fi

as_owner() {
	if [ -z "$owner" ]; then
		"$@"
	elif command -v setpriv >/dev/null 2>&1; then
		# No shell and no login: the environment stays, the rights go.
		setpriv --reuid "$owner" --regid "$(id -g "$owner")" --clear-groups -- "$@"
	elif command -v runuser >/dev/null 2>&1; then
		runuser -u "$owner" -- "$@"
	else
		die "running as root needs setpriv or runuser (package util-linux)"
	fi
}

if [ -z "$owner" ]; then
	[ "$(id -u)" != 0 ] || die "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody"
	base=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/makola/postgres
else
	base=/var/cache/makola-postgres
fi
home=$base/$kind
data=$home/data
log=$home/server.log

mkdir -p "$home"
[ -z "$owner" ] || chown "$owner" "$base" "$home"

# One caller at a time: several test runs may start the cluster at once.
command -v flock >/dev/null 2>&1 || die "flock is missing (package util-linux; on macOS: brew install flock)"
exec 9>"$home/lock"
flock 9

url() { echo "postgres://makola@127.0.0.1:$(cat "$home/port")/postgres?sslmode=disable"; }

bin=$(find_binaries) || bin=

running() { [ -n "$bin" ] && [ -s "$home/port" ] && as_owner "$bin/pg_ctl" -D "$data" status >/dev/null 2>&1; }

case $action in
url)
	running || die "not running; start it with: scripts/postgres.sh start"
	url
	exit 0
	;;
stop)
	if running; then
		as_owner "$bin/pg_ctl" -D "$data" -m fast -w stop 9>&- >&2
	fi
	exit 0
	;;
esac

if [ -z "$bin" ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		say "PostgreSQL is not installed; installing it with apt-get"
		export DEBIAN_FRONTEND=noninteractive
		{ apt-get update -q && apt-get install -y -q --no-install-recommends postgresql; } 9>&- >&2 ||
			die "apt-get could not install the package postgresql"
		bin=$(find_binaries) || die "apt-get installed postgresql, but initdb and pg_ctl are still not to be found"
		if [ "$owner" != postgres ] && id postgres >/dev/null 2>&1; then
			owner=postgres
			chown -R "$owner" "$base"
		fi
	else
		die "PostgreSQL is missing: initdb and pg_ctl are neither in /usr/lib/postgresql/*/bin nor in PATH.
  Debian or Ubuntu: sudo apt-get install postgresql
  macOS:            brew install postgresql
  (as root on Debian this script installs it by itself)"
	fi
fi

if running; then
	url
	exit 0
fi

if [ ! -s "$data/PG_VERSION" ]; then
	rm -rf "$data"
	as_owner "$bin/initdb" -D "$data" -U makola -A trust -E UTF8 --locale=C --no-sync 9>&- >"$home/initdb.log" 2>&1 || {
		cat "$home/initdb.log" >&2
		die "initdb failed"
	}
	{
		echo "listen_addresses = '127.0.0.1'"
		echo "unix_socket_directories = ''"
		echo "max_connections = 300"
		echo "shared_buffers = 256MB"
		echo "max_wal_size = 2GB"
		echo "checkpoint_timeout = 15min"
		echo "jit = off"
		if [ "$kind" = test ]; then
			echo "fsync = off"
			echo "synchronous_commit = on" # as in production: the code may look at it
			echo "full_page_writes = off"
			echo "wal_level = minimal"
			echo "max_wal_senders = 0"
			echo "autovacuum_naptime = 60s"
		fi
	} >>"$data/postgresql.conf"
fi

# A free port: try from a start that differs for each kind, until one binds.
port=54610
[ "$kind" = test ] || port=54710
last=$((port + 60))
while [ "$port" -le "$last" ]; do
	: >"$log"
	[ -z "$owner" ] || chown "$owner" "$log"
	if as_owner "$bin/pg_ctl" -D "$data" -l "$log" -w -t 60 -o "-p $port" start 9>&- >/dev/null 2>&1; then
		echo "$port" >"$home/port"
		url
		exit 0
	fi
	grep -q 'could not bind\|Address already in use\|could not create any TCP' "$log" || break
	port=$((port + 1))
done
cat "$log" >&2
if [ "$kind" = test ] && [ -z "${MAKOLA_POSTGRES_AGAIN:-}" ]; then
	# Without fsync a crash of the machine may leave it broken; nothing in it is worth mending.
	say "the test cluster does not start; making a new one"
	rm -rf "$data"
	MAKOLA_POSTGRES_AGAIN=1 exec "$0" start
fi
die "PostgreSQL did not start; its log is above"
