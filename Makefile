.DEFAULT_GOAL := help
.PHONY: help run check fast bench docs-snapshots pictures fmt deny fuzz

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the server in release mode
	cargo run --release -- serve

check: ## Run every check that must pass before a change is merged
	./check

fast: ## Check the format and run most tests, on SQLite only
	./check fast

bench: ## Benchmark the server against a bare axum and SQLite program
	cargo run --release -p benches

docs-snapshots: ## Update the test snapshots; review the diff before you commit
	INSTA_UPDATE=always scripts/with-postgres cargo nextest run

pictures: ## Take the pictures in docs/images again; look at them before you commit
	@fc-list : family 2>/dev/null | grep -qx Inter || { echo "The font Inter was not found. Install it: apt install fonts-inter fontconfig"; exit 1; }
	FONTCONFIG_FILE="$(CURDIR)/tests/it/console/pictures.conf" cargo nextest run --run-ignored only -E 'test(pictures_for_the_documentation)'

fmt: ## Format the code
	cargo fmt --all

deny: ## Check the licences, advisories and sources of all dependencies
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny was not found. Install it: cargo install --locked cargo-deny"; exit 1; }
	cargo deny check

fuzz: ## Feed each parser mutated input for a minute
	cargo run --release -p fuzz -- all 60
