#!/bin/sh
# A PostgreSQL cluster of three members under Patroni and etcd, on this machine's loopback, to try failovers with. It is no
# production: one etcd, one disk, no passwords.
#
#   deploy/ha/loopback.sh start FOLDER   makes and starts it, and prints the URL for MAKOLA_DATABASE
#   deploy/ha/loopback.sh stop FOLDER    stops it; FOLDER stays
#   deploy/ha/loopback.sh lose FOLDER MEMBER    kills Patroni and PostgreSQL of one, two or three at once, as when a machine is lost
#   deploy/ha/loopback.sh back FOLDER MEMBER    starts that member again
#
# HA_PORT is the first of thirty ports (15400). In FOLDER are the members' logs and their files for patronictl:
# patronictl -c FOLDER/one.yml list. Member one is at HA_PORT + 11, Patroni's own interface at HA_PORT + 21, and so on.
set -eu
die() { echo "loopback.sh: $*" >&2; exit 1; }
usage="usage: deploy/ha/loopback.sh start|stop FOLDER, or lose|back FOLDER one|two|three"
[ $# -ge 2 ] || die "$usage"
action=$1 folder=$2
case ${3:-} in one | two | three | "") ;; *) die "$usage" ;; esac
here=$(cd "$(dirname "$0")" && pwd)
first=${HA_PORT:-15400}
etcd=$first

stop() {
	for name in three two one etcd; do
		[ -f "$folder/$name.pid" ] || continue
		pid=$(cat "$folder/$name.pid")
		kill -CONT "-$pid" 2>/dev/null || true
		kill -TERM "$pid" 2>/dev/null || true
	done
	for name in three two one etcd; do
		[ -f "$folder/$name.pid" ] || continue
		pid=$(cat "$folder/$name.pid") tries=0
		while kill -0 "$pid" 2>/dev/null && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
		kill -KILL "-$pid" 2>/dev/null || true
		[ ! -f "$folder/$name/postmaster.pid" ] || kill -KILL "$(head -1 "$folder/$name/postmaster.pid")" 2>/dev/null || true
		rm -f "$folder/$name.pid"
	done
}

# background NAME COMMAND...: in a process group of its own, so that a test can lose it like a machine.
background() {
	log="$folder/$1.log" pid="$folder/$1.pid"
	shift
	set -- setsid "$@"
	if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses root
		set -- setpriv --reuid postgres --regid postgres --clear-groups -- "$@"
	fi
	"$@" >>"$log" 2>&1 &
	echo $! >"$pid"
}

# lose NAME: Patroni first, so that it does not start PostgreSQL again.
lose() {
	kill -KILL "-$(cat "$folder/$1.pid")" 2>/dev/null || true
	kill -KILL "$(head -1 "$folder/$1/postmaster.pid")" 2>/dev/null || true
}

member() {
	name=$1 number=$2
	sed -e "s|{name}|$name|g; s|{folder}|$folder|g; s|{etcd}|$etcd|g; s|{programs}|$programs|g" \
		-e "s|{port}|$((first + 10 + number))|g; s|{rest}|$((first + 20 + number))|g; s|{shared_buffers}|64MB|; s|{watchdog}|\"off\"|" \
		"$here/patroni.yml" >"$folder/$name.yml"
	background "$name" patroni "$folder/$name.yml"
}

start() {
	for program in etcd patroni patronictl setsid; do
		command -v $program >/dev/null || die "$program is not here: install etcd-server and patroni (Debian)"
	done
	programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
	[ -n "$programs" ] || die "PostgreSQL is not here: install postgresql (Debian)"
	mkdir -p "$folder"
	folder=$(cd "$folder" && pwd)
	[ "$(id -u)" != 0 ] || chown postgres "$folder"
	background etcd etcd --data-dir "$folder/etcd" --name one --logger zap --log-level warn \
		--listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
		--listen-peer-urls "http://127.0.0.1:$((etcd + 1))" --initial-advertise-peer-urls "http://127.0.0.1:$((etcd + 1))" \
		--initial-cluster "one=http://127.0.0.1:$((etcd + 1))"
	member one 1
	await primary 1 || die "no member became primary: see $folder/one.log"
	member two 2
	member three 3
	url="postgres://postgres@127.0.0.1:$((first + 11)),127.0.0.1:$((first + 12)),127.0.0.1:$((first + 13))/makola?target_session_attrs=read-write&sslmode=disable"
	await synchronous 2 3 || die "no standby became synchronous: see $folder/two.log"
	for number in 1 2 3; do
		"$programs/psql" -q "postgres://postgres@127.0.0.1:$((first + 10 + number))/postgres?sslmode=disable" -c 'CREATE DATABASE makola' >/dev/null 2>&1 && break
	done
	echo "$url"
}

# await ROLE NUMBER...: until the Patroni of one of the members says that it has the role.
await() {
	role=$1 tries=0
	shift
	while [ $tries -lt 600 ]; do
		for number in "$@"; do
			! curl -fs -o /dev/null "http://127.0.0.1:$((first + 20 + number))/$role" || return 0
		done
		tries=$((tries + 1))
		sleep 0.1
	done
	return 1
}

case $action in
start) start ;;
stop) stop ;;
lose) lose "${3:?$usage}" ;;
back) background "${3:?$usage}" patroni "$folder/$3.yml" ;;
*) die "$usage" ;;
esac
