# What can be made; `make` alone lists it.
SHELL := /bin/bash
# The crash backtracer can keep a killed child for minutes.
export SWIFT_BACKTRACE := enable=no
RELEASE := swift build -c release --static-swift-stdlib

.PHONY: help bootstrap build run test lint format soak soak-build soak-power-loss soak-io soak-kills soak-reloads
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bootstrap: ## install the Debian packages that are missing
	@scripts/bootstrap

build: bootstrap ## release binaries, the Swift runtime linked in
	$(RELEASE)

run: build ## the whole route, on this machine: real reports, followed to the collector
	@scripts/run-demo "$$($(RELEASE) --show-bin-path)"

lint: ## the style of Swift and shell files, the units
	swift format lint --strict --recursive Package.swift Sources Tests
	shellcheck $$(grep -lE '^#!.*sh$$' scripts/*) .ci/run
	scripts/verify-units

test: bootstrap lint ## everything that CI runs
	swift build --build-tests
	swift test --skip-build --skip 'EndToEndTests|PrismLinuxTests'
	# Apart: their sockets have deadlines, and tests that load both cores would starve them.
	swift test --skip-build --filter PrismLinuxTests
	# Apart: they start many programs, and a child holds all that its parent has open until its exec.
	swift test --skip-build --filter EndToEndTests

# The fault rigs of docs/reliability.md, long; `make test` runs the short form of each.
soak: soak-power-loss soak-io soak-kills soak-reloads ## every fault rig, long

soak-build: bootstrap
	swift build --build-tests
soak-power-loss: soak-build ## 100,000 power losses
	PRISM_SOAK=250 swift test --skip-build --filter PowerLoss
soak-io: soak-build ## every I/O call of the store fails in its turn
	PRISM_SOAK=2 swift test --skip-build --filter EveryIOFails
soak-kills: soak-build ## 200 kills of the daemon
	PRISM_E2E_KILLS=200 swift test --skip-build --filter KillTests
soak-reloads: soak-build ## 1,000 reloads under load, with 66 kills among them
	PRISM_E2E_RELOADS=1000 swift test --skip-build --filter ReloadLoadTests

format: ## rewrite the Swift files in the one style
	swift format format --in-place --recursive Package.swift Sources Tests
