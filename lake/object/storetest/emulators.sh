#!/bin/bash
# Runs the stores' tests against emulators of Google Cloud Storage (fake-gcs-server, built with Go) and Azure Blob Storage (Azurite, fetched with npm), which are
# kept in $CACHE. Called by `make object-stores`. PORT and PORT+1 on loopback are used.
set -euo pipefail
CACHE=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tributary/emulators}
PORT=${PORT:-44431}
GCS_VERSION=v1.56.1 AZURITE_VERSION=3.37.0

mkdir -p "$CACHE"
[ -x "$CACHE/fake-gcs-server" ] || GOBIN="$CACHE" go install "github.com/fsouza/fake-gcs-server@$GCS_VERSION"
[ -x "$CACHE/node_modules/.bin/azurite-blob" ] || npm install --silent --prefix "$CACHE" "azurite@$AZURITE_VERSION"

gcs=http://127.0.0.1:$PORT azure=http://127.0.0.1:$((PORT + 1))/devstoreaccount1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
"$CACHE/fake-gcs-server" -backend memory -scheme http -host 127.0.0.1 -port "$PORT" -external-url "$gcs" -public-host "127.0.0.1:$PORT" -log-level error &
pids+=($!)
AZURITE_TELEMETRY=false "$CACHE/node_modules/.bin/azurite-blob" --blobHost 127.0.0.1 --blobPort $((PORT + 1)) --inMemoryPersistence --silent --skipApiVersionCheck --disableTelemetry &
pids+=($!)
for url in "$gcs/storage/v1/b" "$azure?comp=list"; do
	for _ in $(seq 120); do curl -s -o /dev/null "$url" && continue 2; sleep 0.5; done
	echo "$url does not answer" >&2
	exit 1
done
kill -0 "${pids[@]}" # or another server has answered
curl -sf -o /dev/null -H 'Content-Type: application/json' -d '{"name":"test"}' "$gcs/storage/v1/b"

export TRIBUTARY_TEST_GCS="gs://test/folder?anonymous=true&endpoint=$gcs"
export TRIBUTARY_TEST_AZURE="az://test/folder?account=devstoreaccount1&endpoint=$azure"
# The emulator's account and key are the same everywhere, and public.
export AZURE_STORAGE_ACCOUNT_KEY=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
go test -count=1 -v -run '^(TestBucket|TestContainer)$' ./lake/object/gcsstore ./lake/object/azurestore
