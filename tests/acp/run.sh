#!/bin/sh
# Drives the example agent of pintle-acp with the clients of package-lock.json, which are installed into a temporary directory.
# `cargo xtask protocols` does the same, as a step of the gate.
# Usage: run.sh AGENT [--update]. AGENT is what `cargo build -p pintle-acp --example acp_agent` builds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
agent=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/suite.mjs" "$work/"
mkdir "$work/golden"
if [ -d "$here/golden" ]; then cp -R "$here/golden/." "$work/golden/"; fi
# `npm ci` refuses a lock file without the packages of other platforms, which npm itself leaves out.
(cd "$work" && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error)
(cd "$work" && node suite.mjs "$agent" "$@")
if [ "${1-}" = --update ]; then mkdir -p "$here/golden" && cp -R "$work/golden/." "$here/golden/"; fi
