#!/bin/sh
# Runs a public npm client of Toss Payments against the simulator, in a temporary folder. Exits non-zero when the client and
# the simulator disagree; says so and exits 0 when there is no npm or no registry to install the client from.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
for tool in npm node; do
	command -v "$tool" >/dev/null || { echo "npm check skipped: $tool is not installed"; exit 0; }
done

work=$(mktemp -d)
simulator=
finish() {
	[ -z "$simulator" ] || kill "$simulator" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

cp "$here/package.json" "$work/"
# The client needs none of its install scripts, so none runs; no lock file, which would name a registry.
if ! (cd "$work" && npm install --ignore-scripts --no-package-lock --no-audit --no-fund >install.log 2>&1); then
	if grep -Eq 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED' "$work/install.log"; then
		echo "npm check skipped: the registry is not reachable"
		exit 0
	fi
	cat "$work/install.log" >&2
	echo "npm check failed: the client cannot be installed" >&2
	exit 1
fi

(cd "$here/../../.." && go build -o "$work/tosssim" ./cmd/tosssim)
mkfifo "$work/address"
"$work/tosssim" -addr 127.0.0.1:0 >"$work/address" &
simulator=$!
read -r _ _ _ address <"$work/address"
cd "$work"
node "$here/check.mjs" "$address"
