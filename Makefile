# The commands of this repository. Each sets up what it needs and is quick when nothing is missing.

GOLANGCI_LINT := .cache/bin/golangci-lint

.PHONY: help
help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/'

.PHONY: setup
setup: ## install the programs that tests and demo need
	@scripts/setup

.PHONY: build
build: ## build the programs into bin/
	go build -trimpath -o bin/ ./cmd/...

.PHONY: test
test: setup ## run all tests, with the race detector
	@scripts/setup browser
	go test -race -timeout 20m ./...

.PHONY: pictures
pictures: setup ## use the pages in Chromium and take the pictures of the guides anew; needs a Korean font
	@scripts/setup browser
	go test ./internal/browser -run Guides -count=1 -update

.PHONY: sim
sim: ## play days of shop life; SEEDS=1-200 says which, CSV=file keeps a line of each
	go test ./internal/sim -run '^TestSeeds$$' -count=1 -parallel 2 -timeout 0 -v -args -seeds '$(or $(SEEDS),1-20)' $(if $(CSV),-csv '$(abspath $(CSV))')

.PHONY: sim-guards
sim-guards: ## take out every guard of the audit and name the seed that notices; GUARD=text picks, TABLE=file keeps the result, LEFT=1 goes on with what it lacks
	go test ./internal/sim -run '^TestGuards$$' -count=1 -timeout 0 -v -args -guards $(if $(GUARD),-guard '$(GUARD)') $(if $(LEFT),-left) $(if $(TABLE),-table '$(abspath $(TABLE))')

.PHONY: demo
demo: setup ## run the whole story on this machine; ONCE=1 ends when it has been told
	go run ./cmd/demo $(if $(ONCE),-once)

.PHONY: restore-drill
restore-drill: setup ## lose the books on purpose and get them back: back-up, loss, restore, proof
	go run ./cmd/drill

.PHONY: lint
lint: ## check format and rules
	@scripts/setup golangci-lint
	$(GOLANGCI_LINT) fmt --diff
	$(GOLANGCI_LINT) run
