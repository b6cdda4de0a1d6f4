#!/bin/sh
# Runs the whole gate. Arguments go to `go test`: make test passes -race, and make quick -short, which leaves out PostgreSQL,
# browsers and the built program.
#
# Everything that a fresh machine may lack is found or installed first, with a clear word when it
# cannot be: PostgreSQL by scripts/postgres.sh, Chromium by scripts/chromium.sh, a mail server by scripts/smtp.sh, a C compiler here (the race detector needs one).
set -eu
cd "$(dirname "$0")/.."

begun=$(date +%s)
step() { printf '\n== %s (after %s s)\n' "$*" $(($(date +%s) - begun)); }

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

# Each commit on SQLite waits for its disk. A file system in memory answers at once, and like a disk it outlives a killed
# program. Programs are built on the disk, because they are large.
shm=/dev/shm least=4000000 # KiB
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ "$(df -Pk $shm 2>/dev/null | awk 'NR == 2 {print $4}')" -ge $least ] 2>/dev/null && inMemory=$(mktemp -d -p $shm makola.XXXXXX); then
	trap 'rm -rf "$scratch" "$inMemory"' EXIT
	chmod 1777 "$inMemory" # the PostgreSQL of a test has a user of its own
	if cp /bin/true "$inMemory/run" && "$inMemory/run" 2>/dev/null; then
		export GOTMPDIR="${GOTMPDIR:-$scratch}" TMPDIR="$inMemory"
	fi
fi

# A checkout owned by somebody else has no readable version stamp, and none is needed here.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

case " $* " in *" -race "*) need_compiler; export CGO_ENABLED=1 ;; esac

since=$(cat internal/test/rules/testdata/commits-since)
git merge-base --is-ancestor "$since" HEAD 2>/dev/null ||
	echo "NOTICE: the checkout has no history back to $since, so the subjects of commits are not checked"

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

# What is too slow under the race detector: a browser, every wrong input to every page, the built program killed under load, and a lost COMMIT at every
# step of a delivery or an act, random lives of payments, every word about every payment. They run without it, and so does the whole length of the simulations.
slow='^(TestBrowser_.*|TestKilled.*|TestRestore_runbookPaysOnce|TestStandby_.*|TestTwoLives.*|TestStopped.*|TestDeb_.*|TestAnRPM_.*|TestImage_.*|TestInterrupted.*|TestPaused.*|TestPgBouncer_.*|TestProxies_.*|TestPostgreSQL_.*|TestRevocation_reachesEveryNode|TestPreviousRelease_.*|TestLoad_moreCallersThanConnections|TestGuideSamples_.*|TestSend_lostCommitAnswer|TestSend_groupDeletedMeanwhile|TestDeliver_otpOvertakesCampaign|TestConsole_badInput|TestConsole_wrongMethodsAndForms|TestConsole_needsASession|TestConsole_otherTenantsAreHidden|TestConsole_plantedTextIsEscaped|TestPayments_random|TestPayout_lostConnections|TestHistory_matchesModel|TestKinds_interruptedApplyOnce|TestResponses_aloneMoveNoMoney|TestDemo_createdWholeOrNotAtAll)$'

# What measures its own time runs alone.
timed='^(TestPrimary_hangs|TestBatchPages_hostileFiles|TestCluster_.*|TestMasterKey_rotatedUnderLoadAndKills)$'

# What needs languages and tools that a machine with Go alone lacks; the gate installs them.
languages='^(TestSamples_(verifySignatures|sendTheRequest)|TestAlertRules_fire|TestDeliver_realMailServer)$'

# These wait for real time, or do a thing very often: make quick leaves them to the gate.
waiting='^(TestTable_memory|TestLog_staysBounded|TestAnswers_unreadEndInTime|TestAnswers_unreadOfANodeAreBounded|TestOpen_bombs)$'

case " $* " in *" -short "*)
	step "tests on SQLite alone"
	go test -vet=off -p 4 -timeout 10m "$@" -skip "$slow|$timed|$languages|$waiting|^TestSimulation_" ./...
	exit
esac

# failed ends the gate. Its last 20 lines have test, file and line of each failure: the logs of tested programs fill pages, and
# the end of a log must be enough.
failed() {
	step "what failed"
	awk -v root="$PWD" -f scripts/failures.awk "$1"
	exit 1
}

# tests is go test, without the checks of go vet, which have run. What runs beside it is asked by joined.
tests() {
	{ go test -vet=off -count=1 "$@" 2>&1 || touch "$scratch/failed"; } | tee -a "$scratch/tests"
}

# beside is go test in the background; joined waits for all of them and prints their output.
jobs=
beside() {
	output=$(mktemp -p "$scratch" beside.XXXXXX)
	{ go test -vet=off -count=1 "$@" >"$output" 2>&1 || touch "$scratch/failed"; } &
	jobs="$jobs $!:$output"
}
joined() {
	for job in $jobs; do
		wait "${job%%:*}"
		cat "${job#*:}" | tee -a "$scratch/joined"
	done
	jobs=
	if [ -e "$scratch/failed" ]; then
		cat "$scratch/tests" >>"$scratch/joined"
		failed "$scratch/joined"
	fi
}

# Staticcheck computes while the next steps wait for downloads.
go run honnef.co/go/tools/cmd/staticcheck@v0.7.0 ./... >"$scratch/staticcheck" 2>&1 &
staticcheck=$!

step "PostgreSQL"
MAKOLA_TEST_POSTGRES=$(scripts/postgres.sh start)
export MAKOLA_TEST_POSTGRES
echo "$MAKOLA_TEST_POSTGRES"

step "languages of the samples, and what the tests of deploy/ run"
scripts/languages.sh
scripts/tools.sh
command -v soffice >/dev/null 2>&1 || echo "LibreOffice is not installed (libreoffice-calc-nogui): TestLibreOffice_opensAndSaves is left out"

step "a mail server"
scripts/smtp.sh

step "Chromium"
MAKOLA_TEST_CHROMIUM=$(scripts/chromium.sh)
export MAKOLA_TEST_CHROMIUM
echo "$MAKOLA_TEST_CHROMIUM"

step "staticcheck"
wait $staticcheck || {
	cat "$scratch/staticcheck" >&2
	exit 1
}

# The race detector watches our code and its libraries, but not SQLite, which is C translated to Go:
# watched, it alone takes more time than everything else together.
unwatched='-gcflags=modernc.org/...=-race=false'

# Under the race detector a package runs its tests on PostgreSQL, and on SQLite without it: the Go code that could race is the
# same on both. These have code of their own for each engine, or lock what the others share.
both='./internal/db ./internal/db/postgres ./internal/db/sqlite ./internal/jobs ./internal/groupcommit'

# Nothing here could race: rules of the source and of the documents, and what does one thing after another.
alone='./internal/test/rules ./docs ./internal/cli ./internal/sample ./internal/sheet'

# Of internal/app these run on the engine that is named. Everything else there is the same in both steps, and runs in the first.
engines='^(TestScenarios|TestAPI_badInput|TestChecks_findEveryFault|TestClock_setBackStopsMoney|TestClients_thatLeaveMakeNoErrors|TestLiveMoney_needsProduction|TestSMPP_silentSubmitDelaysNoOther|TestIdempotencyKey_inProgress|TestLog_omitsClientsThatHangUp|TestAccountPages_nothingOfTheInstallation|TestStatement_wholeMonth|TestPages_manyPayments|TestPaymentNotes_operatorsOnly|TestNeedsAttention_ownerAndFilter|TestReference_concurrentIsPaidOnce|TestExamples_workOnTheDemoAccount|TestConsole_formSentTwice|TestConsole_emptyAccountPages|TestHeldPayout_needsAnotherPerson|TestHeldPayout_showsOriginAndPayee|TestPayoutForm_concurrentConfirmsPayOnce|TestPayoutForm_boundToPersonAndTenant|TestPayoutForm_showsErrors|TestPayoutForm_bankAndRefused|TestBatchPages_columnsOfAFile|TestBatchPages_registeredNames|TestBatchPages_fromFileToResults|TestBatchPages_refusedAndRetried|TestRefundPage_approvedByAnother|TestPaystack_payouts|TestPaystack_collections|TestPawaPay_payments|TestMoolre_payments|TestCampaignPages_fromFileToHandsets|TestCampaignPages_approval|TestCampaignPages_refusals|TestCampaignPages_severalGroups|TestCampaignPages_promotionalWaits)$'

case " $* " in
*" -race "*)
	others=$(go list ./... | grep -v -e '/internal/test/rules$' -e '/docs$' -e '/internal/cli$' -e '/internal/sample$' -e '/internal/sheet$' -e '/internal/db$' -e '/internal/db/postgres$' -e '/internal/db/sqlite$' -e '/internal/jobs$' -e '/internal/groupcommit$')
	onSQLite=$(grep -rl 'internal/test/dbtest"' --include='*_test.go' internal | xargs -n 1 dirname | sort -u | sed 's|^|./|' |
		grep -v -x -e './internal/cli' -e './internal/db' -e './internal/db/sqlite' -e './internal/jobs' -e './internal/test/dbtest' -e './internal/test/rules' -e './internal/app')
	step "tests with the race detector, on PostgreSQL"
	# Most packages wait for their database more than they compute: four at once keep two cores busy.
	# The longest begin first: at the end, one alone would leave cores idle.
	longest='./internal/app ./internal/payments ./internal/batch ./internal/changes ./internal/messaging ./internal/messaging/delivery ./internal/relocation'
	export MAKOLA_TEST_ENGINES=PostgreSQL
	tests -p 4 -timeout 40m "$unwatched" "$@" -skip "$slow|$timed" $longest $others
	unset MAKOLA_TEST_ENGINES
	joined
	step "of the database and the jobs on both engines; on SQLite without the race detector; what is too slow for it"
	# Most of the slow ones wait for programs that ask a provider again after up to a minute: so they wait together, and what
	# computes runs beside them.
	beside -timeout 40m -parallel 8 -run "$slow|^TestSimulation_(payments|messages)\$" ./internal/changes ./internal/app ./internal/messaging/... ./internal/payments/...
	beside -p 1 -timeout 40m "$unwatched" "$@" -skip "$slow|$timed" $both
	export MAKOLA_TEST_ENGINES=SQLite
	tests -p 2 -timeout 40m -skip "$slow|$timed|^TestSimulation_" $onSQLite
	tests -timeout 40m -run "$engines" ./internal/app
	unset MAKOLA_TEST_ENGINES
	tests -p 2 -timeout 40m $alone
	joined
	step "what measures its own time"
	tests -timeout 10m -parallel 1 -run "$timed" ./internal/app
	joined
	;;
*)
	step "tests"
	tests -timeout 40m "$@" ./...
	joined
	;;
esac
