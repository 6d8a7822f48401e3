# What can be made; `make` alone lists it.
SHELL := /bin/bash
# The crash backtracer can keep a killed child for minutes.
export SWIFT_BACKTRACE := enable=no
PROGRAMS := prismd prismctl prism-collector
# In a folder of its own: a debug build and its tests go on beside it.
# `-z now`: all symbols are bound at the start, and their table is read-only from then on.
# The linker lld packs relocations, and no name of a program is for others: that makes prismd 11 % smaller.
# The programs print the commit. The names of this folder stay out: the same sources give the same bytes wherever they are built (`make reproducible`).
RELEASE := env PRISM_COMMIT=$(shell git rev-parse --short=8 HEAD 2>/dev/null) swift build -c release \
  --static-swift-stdlib --scratch-path .build/static -Xlinker -z -Xlinker now \
  -Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --version-script=$(CURDIR)/scripts/programs.map \
  -Xswiftc -cross-module-optimization \
  -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=. -Xcc -ffile-prefix-map=$(CURDIR)=.
BINARIES ?= .build/static/release

# Where `make install` puts what; a package overrides them.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions

# The suites of `make unit`.
UNIT := ^Prism(Base|Protocol|Packet|Config|Store|Engine|HTTP|Collector|Client)Tests|^PrismctlTests|^TidyTests

.PHONY: help bootstrap build run run-postgres sdk-check site unit coverage test lint format soak soak-build soak-power-loss soak-io soak-kills soak-replicas soak-chaos soak-reloads
.PHONY: test-page bench-views page-shots diagrams terminal walks clients test-clients test-fleet soak-clients soak-adversary soak-inputs
.PHONY: bench-build bench bench-json bench-plots install deb deb-arm64 test-arm64 reproducible images test-package test-images test-upgrade test-release soak-life mutants soak-damage soak-starts soak-busy soak-migrations soak-model soak-records soak-disk-full soak-fuzz fuzz
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bootstrap: ## install the Debian packages that are missing, for everything here
	@scripts/bootstrap

build: ## release binaries, the Swift runtime linked in
	@scripts/bootstrap build
	@scripts/build-programs '$(RELEASE)' $(PROGRAMS)
	@scripts/check-locks $(PROGRAMS:%=$(BINARIES)/%)

install: $(PROGRAMS:%=$(BINARIES)/%) ## what `make build` made, below DESTDIR; PREFIX is /usr/local
	install -D -m 755 -t "$(DESTDIR)$(PREFIX)/bin" $(PROGRAMS:%=$(BINARIES)/%)
	for program in $(PROGRAMS); do scripts/finish-program "$(DESTDIR)$(PREFIX)/bin/$$program" || exit; done
	install -D -m 755 -t "$(DESTDIR)$(PREFIX)/lib/prism" scripts/prism-report scripts/prism-run
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/lib/sysusers.d" systemd/sysusers.d/prism.conf
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/lib/tmpfiles.d" systemd/tmpfiles.d/*.conf
	install -D -m 644 -t "$(DESTDIR)$(UNITDIR)" systemd/*.service systemd/*.socket
	install -D -m 644 -t "$(DESTDIR)$(UNITDIR)/prism-report@.service.d" systemd/prism-report@.service.d/prism.conf
	sed -i -E 's,/usr/(bin|lib/prism)/prism,$(PREFIX)/\1/prism,' $(patsubst systemd/%,"$(DESTDIR)$(UNITDIR)/%",$(wildcard systemd/*.service))
	@# A configuration that is there stays as it is.
	@cd config && for file in *.yaml *.json namespaces.d/*; do \
	  [ -e "$(DESTDIR)$(SYSCONFDIR)/prism/$$file" ] || install -D -m 644 "$$file" "$(DESTDIR)$(SYSCONFDIR)/prism/$$file"; \
	done
	@for page in docs/man/*; do install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}" "$$page"; done
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/doc/prism" docs/*.md docs/*.png docs/alerts.yml docs/api.yaml \
	  docs/grafana-dashboard.json
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/doc/prism/decisions" docs/decisions/*.md
	for folder in diagrams terminal performance; do install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/doc/prism/$$folder" \
	  $$(find docs/$$folder -name '*.svg' -o -name '*.png' -o -name '*.json') || exit; done
	install -d "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" "$(DESTDIR)$(ZSHDIR)" \
	  "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d"
	for program in prismctl prism-collector; do \
	  $(BINARIES)/$$program completion bash >"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program" && \
	  $(BINARIES)/$$program completion zsh >"$(DESTDIR)$(ZSHDIR)/_$$program" && \
	  $(BINARIES)/$$program completion fish >"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$program.fish" || exit; done

$(PROGRAMS:%=$(BINARIES)/%):
	@echo "$@ is missing: run make build first" >&2; exit 69

deb: build ## the Debian packages, into .build/deb, held to lintian
	@scripts/bootstrap package
	@scripts/build-packages .build/deb
	lintian --allow-root --fail-on error,warning .build/deb/*.deb

ARM64 := .build/arm64/programs/release
deb-arm64: ## the Debian packages for arm64 (Debian 13), built on another architecture, into .build/deb-arm64
	@scripts/bootstrap build package
	@scripts/arm64 prepare
	@scripts/build-programs 'scripts/arm64 sdk programs $(RELEASE)' $(PROGRAMS)
	@scripts/check-locks $(PROGRAMS:%=$(ARM64)/%)
	@BINARIES=$(CURDIR)/$(ARM64) scripts/build-packages .build/deb-arm64 $(CURDIR)/scripts/arm64 package
	lintian --allow-root --fail-on error,warning .build/deb-arm64/*.deb

reproducible: ## the packages, built twice from the last commit in different folders, are equal byte for byte
	@scripts/bootstrap build package
	@scripts/reproducible

images: deb ## OCI images of the daemon and of the collector, into .build/images
	@scripts/bootstrap images
	@scripts/build-images .build/deb .build/images

sdk-check: build ## OpenTelemetry's SDK for Python and fluent-logger, from PyPI, report to a real daemon, and through it to a backend
	@scripts/sdk-check $(BINARIES)
	@scripts/sdk-circle $(BINARIES)

diagrams: ## the diagrams of the pages, docs/diagrams/*.svg, from their sources
	@scripts/bootstrap diagrams
	@scripts/diagrams

terminal: ## pictures of prismctl's commands at two sizes of a terminal, docs/terminal, from a demo
	for program in $(PROGRAMS); do swift build --product $$program || exit; done
	@scripts/terminal-pictures .build/debug

walks: ## the guides for developers, backend engineers, fleets, records, the recorder, messages and scale, followed from an empty folder, with the time of each step
	@scripts/bootstrap build test postgres
	for program in $(PROGRAMS); do swift build --product $$program || exit; done
	@scripts/walks .build/debug

site: ## the documentation as a site, into .build/site
	@scripts/bootstrap site
	@scripts/build-site

run: ## the whole route, on this machine: real reports, followed to the collector
	@test -x $(BINARIES)/prismd || echo "make run: the first build takes 5 to 12 minutes on two cores, the demo 10 s"
	@$(MAKE) --no-print-directory build
	@scripts/bootstrap demo
	@scripts/run-demo $(BINARIES)

run-postgres: build ## the same with two collectors on a PostgreSQL of their own, behind haproxy
	@scripts/bootstrap demo postgres
	@scripts/run-demo $(BINARIES) --postgres

lint: ## the style of Swift and shell files, the units
	swift format lint --strict --recursive Package.swift Sources Tests
	shellcheck $$(grep -slE '^#!.*sh$$' scripts/* Tests/MachineTests/* debian/*) .ci/run
	scripts/verify-units

CLIENTS := .build/clients
clients: ## the client libraries: libprism in clients/c/build, the Python wheel and sdist in .build/clients
	$(MAKE) --no-print-directory -C clients/c all
	rm -rf $(CLIENTS) && mkdir -p $(CLIENTS)
	cp -r clients/python $(CLIENTS)/source
	cd $(CLIENTS)/source && /usr/bin/python3 -c 'from setuptools import build_meta; build_meta.build_sdist(".."); build_meta.build_wheel("..")' \
	  >../python.log 2>&1 || { cat ../python.log; exit 1; }

test-clients: clients ## the client libraries, alone and against the real daemon, which is killed, stopped and starved
	$(MAKE) --no-print-directory -C clients/c -j2 test
	mypy --strict clients/python/src
	for test in clients/python/tests/test_*.py; do python3 $$test || exit; done
	for program in $(PROGRAMS) client-load-swift; do swift build --product $$program || exit; done
	cd Tests/ClientTests && export PRISM_DEVICES=15 && printf 'test_%s\n' scenario.CTests scenario.SwiftTests scenario.PythonTests scenario.SharedSpoolTests records documentation crashes fleet run | \
	  xargs -P 3 -n 1 python3 -m unittest

test-fleet: ## planted bugs in five languages and five versions, on 3 real and 50 simulated daemons over a month: groups, rates, states
	for program in $(PROGRAMS) client-load-swift; do swift build --product $$program || exit; done
	cd Tests/ClientTests && python3 -m unittest test_fleet

soak-clients: clients ## 100,000 reports from eight threads for each client library
	for program in $(PROGRAMS) client-load-swift; do swift build --product $$program || exit; done
	PRISM_CLIENT_REPORTS=100000 python3 -m unittest discover --start-directory Tests/ClientTests

test-release: fuzz mutants test-package test-optimized test-upgrade test-fleet ## what a release needs beside make test: libFuzzer, every mutant is killed, the package works

test-optimized: soak-build build ## the tests of keys and signatures on release programs: what a debug build keeps alive, they may not
	PRISM_PROGRAMS=$(abspath $(BINARIES)) swift test --skip-build --filter 'SealedPayloadTests|CommandSendTests'

test-upgrade: build ## programs of two commits before the first published version beside these: forwards, back, with reports that wait
	for commit in 5aa1023 d093a1b; do scripts/test-upgrade $$commit $(BINARIES) || exit; done

test-package: deb ## the package on a clean Debian with systemd: the operator's guide, the units, an upgrade under load
	PYTHONPATH=Tests/MachineTests python3 -m unittest test_commands test_guide test_install test_packages test_sources test_units

SUITES := PrismPacketTests PrismStoreTests PrismHTTPTests
test-arm64: deb-arm64 ## the packages for arm64 under qemu: the route of `make run`, then the suites of packets, store and HTTP
	@scripts/arm64 in sh -ec 'dpkg --install .build/deb-arm64/prism_*.deb .build/deb-arm64/prism-collector_*.deb && scripts/run-demo /usr/bin | cat'
	PRISM_SUITES='$(SUITES)' scripts/arm64 sdk tests swift build -c release -Xswiftc -enable-testing --product prismPackageTests
	@scripts/arm64 in sh -ec 'export LD_LIBRARY_PATH=/usr/lib/swift/linux; for which in --skip --filter; do \
	  .build/arm64/tests/release/prismPackageTests.xctest --testing-library swift-testing $$which PrismHTTPTests; done'

test-page: ## the pages of collector and daemon in Chromium: every view, narrow and wide, light and dark; a rollout to real daemons
	@scripts/bootstrap page
	for program in $(PROGRAMS); do swift build --product $$program || exit; done
	scripts/test-page .build/debug

bench-views: build ## how long each view of the page takes: ROWS=1000000 STORE=sqlite or postgresql, at most SLOWEST=1 s
	bench/views --programs $(BINARIES) --rows $(or $(ROWS),1000000) --store $(or $(STORE),sqlite) --slowest $(or $(SLOWEST),1)

page-shots: ## pictures of the page into docs/, from a collector with a made-up fleet
	@scripts/bootstrap page
	swift build --product prism-collector
	scripts/test-page .build/debug test_page.EmptyTests
	.build/page-tools/bin/python scripts/page-shots .build/debug

test-images: images ## the OCI images: what is in them, and a report from one to the other
	PYTHONPATH=Tests/MachineTests python3 -m unittest test_images

# `make test-release` is apart: with the builds that it needs, CI would take more than its 40 minutes.
test: bootstrap lint ## everything that CI runs
	swift build --build-tests
	# Four at a time: of 160 suites at once, none gets a core before its deadlines pass.
	scripts/run-suites 4 --skip 'EndToEndTests|PrismLinuxTests'
	# Apart: their sockets have deadlines, and tests that load both cores would starve them.
	scripts/run-suites 4 --filter PrismLinuxTests
	# Apart: they start many programs, and a child holds all that its parent has open until its exec. Three at a time: of
	# thirty, none would get a core for minutes.
	scripts/run-suites 3 --filter EndToEndTests --skip 'AdversaryTests|RoomTests'
	# Apart: an attack takes all that it gets.
	scripts/run-suites 1 --filter 'EndToEndTests.(AdversaryTests|RoomTests)'
	$(MAKE) --no-print-directory test-clients
	scripts/walks .build/debug

unit: ## the suites that need no root, no network and no started program
	swift build --build-tests
	swift test --skip-build --filter '$(UNIT)'

coverage: bootstrap ## the share of lines that the tests run, by module, held to a floor (scripts/coverage)
	scripts/coverage

fuzz: bootstrap ## libFuzzer for 20 s on each reader of bytes from outside (scripts/fuzz)
	scripts/fuzz

mutants: ## break one rule at a time, which a named suite must notice (scripts/mutants)
	scripts/mutants
	$(MAKE) --no-print-directory -C clients/c mutants

# The fault rigs of docs/reliability.md, long; `make test` runs the short form of each.
soak: soak-power-loss soak-io soak-kills soak-replicas soak-chaos soak-reloads soak-inputs soak-damage soak-starts soak-busy soak-migrations soak-model soak-records soak-disk-full soak-life soak-clients soak-fuzz soak-adversary mutants ## every fault rig, long

soak-build: bootstrap
	swift build --build-tests
soak-power-loss: soak-build ## 100,000 power losses
	PRISM_SOAK=250 swift test --skip-build --filter PowerLoss
soak-io: soak-build ## every I/O call of the store fails in its turn
	PRISM_SOAK=2 swift test --skip-build --filter EveryIOFails
soak-kills: soak-build ## 200 kills of the daemon
	PRISM_E2E_KILLS=200 swift test --skip-build --filter KillTests
soak-replicas: soak-build ## 200 kills of three replicas and their database, and a standby promoted, before eight daemons
	PRISM_E2E_REPLICA_KILLS=200 swift test --skip-build --filter ReplicaKillTests
soak-chaos: soak-build ## 15,000 reports before a collector that misbehaves
	PRISM_CHAOS_REPORTS=3000 swift test --skip-build --filter 'MisbehavingCollectorTests|ChaosDaemonTests'
soak-starts: soak-build ## 1,000 random histories of up to ten starts
	PRISM_SOAK=25 swift test --skip-build --filter StartHistories
soak-busy: soak-build ## the end-to-end kill suites 20 times beside four busy loops
	scripts/soak-busy 20 4
soak-damage: soak-build ## 500 damaged databases, and 40 under the real daemon
	PRISM_SOAK=2 swift test --skip-build --filter 'StoreFaults/Damage'
	PRISM_E2E_DAMAGE=40 swift test --skip-build --filter DamagedStateTests
soak-migrations: soak-build ## every I/O call fails in its turn while an old database is brought over
	PRISM_SOAK=2 swift test --skip-build --filter Migrations
soak-model: soak-build ## 30,000 random operations on the store and its model
	PRISM_SOAK=25 swift test --skip-build --filter ModelTests
soak-records: soak-build ## 10,000 random histories of a device's records and the collector's
	PRISM_SOAK=625 swift test --skip-build --filter 'DownModelTests/collector'
soak-disk-full: soak-build ## a disk that is filled and freed 200 times
	PRISM_E2E_DISK_FULL=200 swift test --skip-build --filter DiskFullTests
soak-inputs: soak-build ## 100,000 entries of a journal and the crash spool, with 50 kills each
	PRISM_E2E_JOURNAL_ENTRIES=100000 PRISM_E2E_JOURNAL_KILLS=50 PRISM_E2E_SPOOL_KILLS=50 \
	  swift test --skip-build --filter 'JournalKillTests|CrashSpoolKillTests'
soak-reloads: soak-build ## 1,000 reloads under load, with 66 kills among them
	PRISM_E2E_RELOADS=1000 swift test --skip-build --filter ReloadLoadTests

soak-fuzz: bootstrap ## an hour of libFuzzer for each harness of Tests/Fuzz
	scripts/fuzz 3600
soak-adversary: soak-build build ## every attack on release programs, with 1,000 answers each; on a machine that does nothing else
	PRISM_PROGRAMS=$(abspath $(BINARIES)) PRISM_SOAK=2 SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=1 \
	  swift test --skip-build --filter 'AdversaryTests|RoomTests|StrangerTests|CollectorBombTests|DeviceFleetTests'
soak-life: bootstrap ## 500 simulated lives of two days each, on optimized tests
	scripts/soak-lives 500

bench-build: build
	@$(RELEASE) --product packet-bench >&2
	@$(RELEASE) --product collector-bench >&2
	@bench/fetch-peers >&2
bench: bench-build ## S1 to S13, S16 and S17, with syslog-ng and rsyslog beside: medians of 3 runs, within 10 minutes
	@bench/run
bench-json: bench-build ## the same for machines: all that is printed to stdout is JSON
	@bench/run --json
bench-plots: bench-build ## how cost grows, drawn into docs/performance
	@bench/plot
	@bench/plot --links

format: ## rewrite the Swift files in the one style
	swift format format --in-place --recursive Package.swift Sources Tests
