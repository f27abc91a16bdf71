.DEFAULT_GOAL := help
.PHONY: help run check fast bench docs-snapshots fmt deny fuzz

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the server, built for speed
	cargo run --release -- serve

check: ## Everything that must hold before a change goes in
	./check

fast: ## Format and tests on SQLite only
	./check fast

bench: ## Measure the server beside the bare limit of axum and SQLite
	cargo run --release -p benches

docs-snapshots: ## Write the snapshots of the tests anew; read the diff before you commit
	INSTA_UPDATE=always scripts/with-postgres cargo nextest run

fmt: ## Format the code
	cargo fmt --all

deny: ## Check licences, advisories and sources of all dependencies
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing. Install it: cargo install --locked cargo-deny"; exit 1; }
	cargo deny check

fuzz: ## Feed each parser mutated input for a minute
	cargo run --release -p fuzz -- all 60
