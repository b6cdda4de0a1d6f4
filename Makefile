# Makola. `make` prints what there is.

GO      ?= go
BENCH   ?= .
COUNT   ?= 3
MUTANT  ?= .
VERSION := $(shell scripts/version.sh)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Start Makola in development mode with its simulator.
	$(GO) run ./cmd/makola serve

.PHONY: build
build: ## Build bin/makola, with the profile of a busy server.
	$(GO) build -trimpath -pgo=cmd/makola/makola.pgo -ldflags "-s -w -X github.com/makola/makola/internal/cli.version=$(VERSION)" -o bin/makola ./cmd/makola

.PHONY: deb
deb: export CGO_ENABLED := 0
deb: build ## Pack bin/makola as a Debian package and as an RPM in build/.
	@mkdir -p build && scripts/package.sh bin/makola '$(VERSION)' $$($(GO) env GOARCH) build

.PHONY: dist
dist: ## Build a release in build/dist: packages, programs of each system, SHA256SUMS.
	@scripts/dist.sh '$(VERSION)'

.PHONY: image
image: ## Build the image makola:VERSION from scratch, with docker or buildah.
	@scripts/image.sh '$(VERSION)'

.PHONY: sbom
sbom: ## Write what the program is made of to build/sbom.json (CycloneDX).
	@mkdir -p build && $(GO) run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 app -json -main cmd/makola -output build/sbom.json . && echo build/sbom.json

.PHONY: test
test: ## The gate: formatting, vet, tidy, every test on SQLite and PostgreSQL with the race detector.
	@scripts/test.sh -race

.PHONY: test-fast
test-fast: ## The same tests without the race detector.
	@scripts/test.sh

.PHONY: quick
quick: ## What can be known in a minute and a half: SQLite alone, no race detector, no browser, no killed programs.
	@scripts/test.sh -short

.PHONY: fuzz
fuzz: ## Run every fuzz test for ten seconds.
	@scripts/fuzz.sh 10s

.PHONY: mutate
mutate: ## Break each money rule on purpose and see that its test fails (MUTANT=).
	@MAKOLA_TEST_POSTGRES=$$(scripts/postgres.sh start) $(GO) test ./internal/app -tags mutate -count=1 -timeout 90m -v -run '^TestMutants$$/$(MUTANT)'

# The tests whose matrices the gate cuts to some cases of each kind, and their packages. gate_test.go knows which they are.
LONG  := ./internal/app ./internal/batch ./internal/changes ./internal/relocation ./internal/reconcile
WHOLE := ^(TestBrowser_every(Screen|Guide)|TestConsole_badInput|TestStatement_wholeMonth|TestPages_manyPayments|TestConsole_otherTenantsAreHidden|TestDemo_createdWholeOrNotAtAll|TestRun_killedAtEveryBoundary|TestKilled_batches|TestMove_interruptedResumesOrIsAbandoned|TestMonth_findsPlantedFaults|TestSimulation_payments|TestSimulation_messages|TestKinds_interruptedApplyOnce)$$

.PHONY: deep
deep: ## What takes longer than the gate: clients of openapi.json, a release, whole matrices (screens, bad input, faults), all mutants.
	@scripts/clients.sh
	@scripts/dist.sh '$(VERSION)'
	@MAKOLA_TEST_DEEP=1 MAKOLA_TEST_POSTGRES=$$(scripts/postgres.sh start) MAKOLA_TEST_CHROMIUM=$$(scripts/chromium.sh) $(GO) test $(LONG) -count=1 -timeout 60m -run '$(WHOLE)'
	@$(MAKE) --no-print-directory mutate

.PHONY: screens
screens: ## Pictures of every screen, theme and width in build/screens, and that of the README.
	@mkdir -p build/screens docs/pictures
	@MAKOLA_TEST_CHROMIUM=$$(scripts/chromium.sh) MAKOLA_SCREENS=$(CURDIR)/build/screens $(GO) test ./internal/app -count=1 -run '^TestBrowser_every(Screen|Guide)$$'
	@cp build/screens/readme-handsets.png docs/pictures/handsets.png
	@echo build/screens/index.html

.PHONY: bench
bench: build ## Benchmarks of bin/makola beside pgbench on a PostgreSQL with full durability (BENCH=, COUNT=).
	@MAKOLA_TEST_BENCH_BINARY=$(CURDIR)/bin/makola MAKOLA_TEST_POSTGRES=$$(scripts/postgres.sh --durable start) $(GO) test ./internal/... -run '^$$' -bench '$(BENCH)' -benchtime 1x -count $(COUNT) -timeout 120m

.PHONY: pg-start
pg-start: ## Start the PostgreSQL of the tests and print its URL.
	@scripts/postgres.sh start

.PHONY: pg-stop
pg-stop: ## Stop it.
	@scripts/postgres.sh stop
