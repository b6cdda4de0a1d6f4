#!/bin/sh
# Runs the whole gate. Arguments go to `go test` (make test passes -race).
#
# Everything that a fresh machine may lack is found or installed first, with a clear word when it
# cannot be: PostgreSQL by scripts/postgres.sh, a C compiler here (the race detector needs one).
set -eu
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

need_compiler() {
	if command -v "${CC:-gcc}" >/dev/null 2>&1; then return; fi
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		step "installing a C compiler for the race detector"
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev >/dev/null
	fi
	command -v "${CC:-gcc}" >/dev/null 2>&1 || {
		echo "the race detector needs a C compiler: install gcc, or run make test-fast" >&2
		exit 1
	}
}

# A checkout owned by somebody else has no readable version stamp, and none is needed here.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

case " $* " in *" -race "*) need_compiler; export CGO_ENABLED=1 ;; esac

step "formatting"
unformatted=$(gofmt -l $(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))
if [ -n "$unformatted" ]; then
	echo "gofmt wants to change:" >&2
	echo "$unformatted" >&2
	exit 1
fi

step "modules"
go mod tidy -diff

step "vet"
go vet ./...
go vet -tags mutate ./internal/app

step "PostgreSQL"
MAKOLA_TEST_POSTGRES=$(scripts/postgres.sh start)
export MAKOLA_TEST_POSTGRES
echo "$MAKOLA_TEST_POSTGRES"

step "tests"
go test -count=1 -timeout 40m "$@" ./...

case " $* " in *" -race "*)
	# What is too slow under the race detector to be as long as it must be: the whole simulation, and the
	# built program killed under load.
	step "the whole simulation and the built program"
	go test -count=1 -timeout 40m ./internal/app -run '^(TestSimulation|TestKilled|TestStopped|TestPaused|TestRevocation|TestManyCallers|TestLone|TestProgram)'
	;;
esac
