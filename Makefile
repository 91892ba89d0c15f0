# `make help` explains the targets. The work itself is done by cargo and by `python3 -m tools.stack`.

STACK := python3 -m tools.stack

.DEFAULT_GOAL := help
.PHONY: help
help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: ## Check without running: format, prepared statements and lints, documents, template
	cargo fmt --all --check
	$(STACK) prepare --check
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	$(STACK) check-template

.PHONY: test
test: ## Run all tests against a PostgreSQL and an AWS emulator of their own
	$(STACK) selftest
	$(STACK) run -- cargo test --workspace

.PHONY: test-extending
test-extending: ## Do what docs/extending.md says, from an empty folder to the audit; then what the example says
	$(STACK) walk docs/extending.md examples/orders/README.md

.PHONY: faults
faults: ## Kill, freeze and deafen real components at every line that matters, and count (N=100, POINTS_N=3, ONLY="words")
	N=$(or $(N),100) POINTS_N=$(or $(POINTS_N),3) \
		$(STACK) run -- cargo test --quiet --package system-tests --test faults -- $(ONLY)

.PHONY: chaos
chaos: ## Let a crowd of real components work while a seed decides what dies, then count (MINUTES=5, SEED=number)
	MINUTES=$(or $(MINUTES),5) SEED=$(SEED) \
		$(STACK) run -- cargo test --quiet --package system-tests --test chaos

# Coverage counters are a pass of LLVM that rustc has on stable; the target is named so that build scripts
# do without them.
FUZZ_TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)

.PHONY: fuzz
fuzz: ## Look for bytes that break a parser, led by coverage, on stable (PARSER=message|records|operator|collector|feed|bars, MINUTES=5)
	mkdir -p target/fuzz/corpus/$(or $(PARSER),records)
	SQLX_OFFLINE=true RUSTFLAGS="$(FUZZ_FLAGS)" cargo run --manifest-path fuzz/Cargo.toml --target-dir target/fuzz \
		--target $(FUZZ_TRIPLE) --bin $(or $(PARSER),records) -- target/fuzz/corpus/$(or $(PARSER),records) \
		-artifact_prefix=target/fuzz/ -max_total_time=$$(( $(or $(MINUTES),5) * 60 ))

.PHONY: rehearse
rehearse: ## Deploy, upgrade, roll back and delete on emulators, with authorization on (ONLY="words")
	$(STACK) rehearse $(ONLY)

.PHONY: demo
demo: ## Replay a session end to end, with things dying (DATA=folder for your own, TZ_DATA=zone)
	$(STACK) demo $(if $(DATA),--data $(DATA)) $(if $(TZ_DATA),--zone $(TZ_DATA)) $(DEMO_ARGS)

.PHONY: dev
dev: ## Start the stack, deploy onto it, leave it running and say how to use it
	$(STACK) dev

.PHONY: stop
stop: ## Stop the stack; its data stay
	$(STACK) down

.PHONY: bench-relay
bench-relay: ## Race the relay against the naive loop; its latency, and bad weather by the million rows (BENCH_… for sizes)
	$(STACK) run -- cargo bench -p runtime --bench relay $(if $(BENCH),-- $(BENCH))

.PHONY: bench-sweep
bench-sweep: ## Sweep a bucket of 200,000 objects in memory: pages, statements, seconds, memory (BENCH_OBJECTS for the size)
	$(STACK) run -- cargo bench -p runtime --bench sweep

.PHONY: database-tls
database-tls: ## Test who is believed, against a PostgreSQL with TLS and a private authority
	python3 -m tools.database tls

.PHONY: database-pooler
database-pooler: ## Run the store's tests through pgbouncer in transaction mode (PGBOUNCER=…, 1.21 or later)
	python3 -m tools.database pooler

.PHONY: prepare
prepare: ## Describe all statements anew in .sqlx/ (after editing SQL or a migration)
	$(STACK) prepare

.PHONY: deploy-local
deploy-local: ## Build the functions and deploy template.yaml onto the running stack again
	$(STACK) deploy

.PHONY: watch
watch: ## Serve every function by name with cargo lambda watch (FUNCTION=… for its QUEUE_URL)
	$(STACK) watch $(FUNCTION)

.PHONY: clean-local
clean-local: ## Stop the stack and remove its data and tools
	$(STACK) down
	rm -rf .tailcar .aws-sam
