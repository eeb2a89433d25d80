#!/bin/sh
# run.sh N SEED [FOCUS...]: makes N random scenarios for each focus (mixed, tables, windows, joins, features, rare, crossed; all by default), lets the real Kafka
# Streams TopologyTestDriver say what is to be expected, and runs them on this library. Needs a JDK from 17 on, Maven and Python 3.
# Exit status 1 on any difference; the scenarios are kept for a look.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
n=${1:?number of scenarios}
seed=${2:?seed}
shift 2
[ $# -gt 0 ] || set -- mixed tables windows joins features rare crossed
for tool in java javac mvn python3; do
  command -v $tool >/dev/null || { echo "differential: $tool is missing; a JDK from 17 on, Maven and Python 3 are needed" >&2; exit 2; }
done

# The oracle is built once, outside the source tree.
oracle=$root/bin/oracle
[ -d "$oracle/lib" ] || mvn -q -B -f "$here/oracle/pom.xml" dependency:copy-dependencies -DoutputDirectory="$oracle/lib"
if [ ! -f "$oracle/classes/Oracle.class" ] || [ -n "$(find "$here/oracle/src" -newer "$oracle/classes/Oracle.class" -name '*.java')" ]; then
  mkdir -p "$oracle/classes"
  javac -nowarn -Xlint:none -d "$oracle/classes" -cp "$oracle/lib/*" "$here"/oracle/src/main/java/*.java
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/differential.XXXXXX")
for focus in "$@"; do
  dir=$work/$focus
  python3 "$here/gen/random_scenarios.py" "$seed" "$n" "$dir" 1 "$focus"
  java -Xmx1g -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$oracle/classes:$oracle/lib/*" Oracle fill "$dir" ||
    echo "differential: the real driver itself fails on some scenarios (see BAD above); they are left out" >&2
  python3 "$here/gen/prune.py" "$dir"
done
cd "$root"
if go test ./topology/topologytest/golden -run '^TestGolden$' -count=1 -v -args -golden "$work"; then
  rm -rf "$work"
else
  echo "differential: the scenarios are in $work" >&2
  exit 1
fi
