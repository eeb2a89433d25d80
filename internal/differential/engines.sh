#!/bin/sh
# engines.sh N SEED: makes N random topologies of each kind and runs them in the harness, by an engine on the embedded broker, and by one on a
# real Kafka; see TestEngineAgreesWithHarness. Needs Python 3, a JDK from 17 on, and Maven.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
n=${1:?number of scenarios}
seed=${2:?seed}
work=$(mktemp -d "${TMPDIR:-/tmp}/differential.XXXXXX")
for focus in mixed tables windows joins features; do
  python3 "$here/gen/random_scenarios.py" "$seed" "$n" "$work" 1 "$focus"
done
cd "$here"
if TRIBUTARY_REQUIRE_KAFKA=1 go test . -run '^TestEngineAgreesWithHarness$' -count=1 -timeout 2h -v -args -scenarios "$work"; then
  rm -rf "$work"
else
  echo "differential: the scenarios are in $work" >&2
  exit 1
fi
