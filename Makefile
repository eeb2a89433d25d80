# Tributary's targets. Everything runs with the Go version named here, which an older go command fetches by itself.
export GOTOOLCHAIN := go1.27.3

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The formatter that belongs to the Go version above; the one in PATH may be older than the language.
GOFMT = $$(go env GOROOT)/bin/gofmt

# Packages to work on, and how many of them at once: tests start brokers, so more than two only disturb each other.
PKG ?= ./...
PARALLEL ?= 2
# Limits: of the tests of one package, and of one fuzz target.
TIMEOUT ?= 15m
FUZZTIME ?= 10s
# Of bench: which workloads, the records of the input, how many runs of each program, and where the peers' programs are, built by peers.
WORKLOAD ?= a,b,c,d,e,f,g,h,i,lake
RECORDS ?= 2000000
ROUNDS ?= 3
PEERS ?= bench/peers
# The Kafka that integration tests and benchmarks start, in place of the usual one: KAFKA_VERSION=4.4.0.
ifdef KAFKA_VERSION
export TRIBUTARY_KAFKA_VERSION := $(KAFKA_VERSION)
endif
# The versions that kafka-versions tests.
KAFKA_VERSIONS ?= 4.3.1 4.4.0
# Arguments of the demonstration, such as ARGS='--brokers host:9092 --registry http://host:8081'.
ARGS ?=

.PHONY: help demo build test lint unit race fuzz bench peers gobench fmt

# The workloads that need a broker, and whether the lake is among the others.
comma := ,
BROKERED = $(subst $() ,$(comma),$(filter-out lake,$(subst $(comma), ,$(WORKLOAD))))
LAKED = $(filter lake,$(subst $(comma), ,$(WORKLOAD)))

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: ## run the demonstration, with an embedded broker unless ARGS say otherwise
	go run ./cmd/tributary demo $(ARGS)

build: ## build the command line into ./bin
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

test: lint unit ## check everything: format, vet, staticcheck, unit and integration tests

lint: ## check the format, vet, staticcheck
	@echo "== gofmt"
	@bad=$$($(GOFMT) -l .); if [ -n "$$bad" ]; then echo "not formatted, run make fmt:"; echo "$$bad"; exit 1; fi
	@echo "== go vet"
	@go vet $(PKG)
	@echo "== staticcheck"
	@go tool staticcheck $(PKG)

unit: ## run unit and integration tests; what can't run here is listed with the reason
	@echo "== go test"
	@go build -o bin/testreport ./internal/testreport/cmd
	@go test -json -vet=off -count=1 -p $(PARALLEL) -timeout $(TIMEOUT) $(PKG) | bin/testreport

race: ## run the tests under the race detector
	@go build -o bin/testreport ./internal/testreport/cmd
	@go test -json -race -vet=off -count=1 -p $(PARALLEL) -timeout $(TIMEOUT) $(PKG) | bin/testreport

fuzz: ## run every fuzz target for FUZZTIME
	@for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "== $$(dirname "$$file") $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname "$$file")"; \
		done; \
	done

bench: ## measure side by side with the raw client and the peers; see bench/README.md
	$(if $(BROKERED),go run ./bench/cmd/bench -workload $(BROKERED) -records $(RECORDS) -rounds $(ROUNDS) $(if $(wildcard $(PEERS)/*/target),-peers $(PEERS)))
	$(if $(LAKED),go run ./bench/lake -rounds $(ROUNDS))

peers: ## build the peers' programs for bench; needs a JDK and Maven
	mvn -q -B -f bench/peers/kafka-streams/pom.xml package

gobench: ## run the Go benchmarks of PKG
	go test -run '^$$' -bench . -benchmem -p 1 $(PKG)

fmt: ## format the code
	$(GOFMT) -w .

# Of chaos: how long the weather lasts, its seed (0 takes one from the clock), and orders a second.
DURATION ?= 2m
PACE ?= 200

.PHONY: chaos
chaos: ## kill, stop and restart instances and brokers for DURATION, then close the books; repeat one with SEED; needs a JDK
	go test -count=1 -v -timeout 0 -run CountsOnce ./internal/chaos -args -chaos.duration=$(DURATION) -chaos.seed=$(if $(filter command line environment,$(origin SEED)),$(SEED),0) -chaos.pace=$(PACE)

# Of differential: scenarios for each focus, and the seed that they are made from.
N ?= 100
SEED ?= 1

.PHONY: differential
differential: ## compare N random scenarios with the real Kafka Streams; needs a JDK, Maven and Python
	internal/differential/run.sh $(N) $(SEED)

.PHONY: differential-engines
differential-engines: ## compare N random topologies of each kind in the harness, on the embedded broker and on a real Kafka; needs a JDK, Maven and Python
	internal/differential/engines.sh $(N) $(SEED)

# Of simulate: how many seeds, from which one, until how many have failed. Of replay: SEED.
SEEDS ?= 2000
FROM ?= 1
FAILURES ?= 1

# A Go runtime whose choices are a seed's (internal/detruntime), and go with it.
DETRUNTIME = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tributary/detruntime
DETGO = CGO_ENABLED=0 GOROOT=$(DETRUNTIME)/goroot GOTOOLCHAIN=local $(DETRUNTIME)/goroot/bin/go test -tags detruntime -overlay $(DETRUNTIME)/overlay.json

.PHONY: simulate
simulate: ## run SEEDS seeds of the engine's simulation, from FROM on, until FAILURES of them have failed
	go run ./internal/detruntime/overlay -dir $(DETRUNTIME)
	$(DETGO) ./engine -run '^TestSimulation$$' -count=1 -timeout 0 -v -args -simulation.seeds=$(SEEDS) -simulation.from=$(FROM) -simulation.failures=$(FAILURES) | grep -vE '^ *(=== RUN|--- PASS)'

.PHONY: replay
replay: ## run one seed of the engine's simulation, and print all that happens in it
	go run ./internal/detruntime/overlay -dir $(DETRUNTIME)
	$(DETGO) ./engine -run '^TestSimulation$$' -count=1 -v -args -simulation.seeds=1 -simulation.from=$(SEED) -simulation.log

.PHONY: kafka-versions
kafka-versions: ## run the tests of groups, transactions and offsets against each of KAFKA_VERSIONS; needs a JDK and Maven
	@for v in $(KAFKA_VERSIONS); do echo "== Kafka $$v"; \
		TRIBUTARY_KAFKA_VERSION=$$v TRIBUTARY_REQUIRE_KAFKA=1 go test -count=1 -vet=off -p 1 -timeout $(TIMEOUT) ./engine/internal/group ./engine/internal/txn ./engine/internal/offsets && \
		TRIBUTARY_KAFKA_VERSION=$$v TRIBUTARY_REQUIRE_KAFKA=1 go test -count=1 -vet=off -timeout $(TIMEOUT) -run 'Streams|Protocol|Versions' ./engine || exit 1; done

# Of kill-loop: rows to land, and over about how many seconds they come.
KILL_ROWS ?= 5000000
KILL_SECONDS ?= 150

.PHONY: kill-loop
kill-loop: ## land KILL_ROWS rows from a real Kafka with three instances under kill -9, and have DuckDB count them
	TRIBUTARY_REQUIRE_KAFKA=1 TRIBUTARY_REQUIRE_READERS=1 TRIBUTARY_KILL_ROWS=$(KILL_ROWS) TRIBUTARY_KILL_SECONDS=$(KILL_SECONDS) \
		go test -count=1 -v -timeout 60m -run '^TestKillLoop$$' ./land

# Of lake-soak: versions of each table.
SOAK_VERSIONS ?= 10000

.PHONY: lake-soak
lake-soak: ## land SOAK_VERSIONS versions each of an appended table and one of current state, with compaction, vacuum and kill -9, and have DuckDB close the books
	TRIBUTARY_REQUIRE_READERS=1 TRIBUTARY_LAKE_SOAK=$(SOAK_VERSIONS) go test -count=1 -v -timeout 0 -run '^Test(State)?Soak$$' ./lake

.PHONY: object-stores
object-stores: ## run the stores' tests against emulators of Google Cloud Storage and Azure; needs npm
	lake/object/storetest/emulators.sh
