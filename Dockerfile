# syntax=docker/dockerfile:1
# The command line in an image without a shell, run as a user without rights.

FROM golang:1.27.3-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/bin/tributary ./cmd/tributary \
 && mkdir -p /out/var/lib/tributary /out/data/lake

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/bin/tributary /usr/local/bin/tributary
# Volumes mounted here take over the owner, so that the process may write to them.
COPY --from=build --chown=65532:65532 /out/var/lib/tributary /var/lib/tributary
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
EXPOSE 8080
# SIGTERM drains and commits; give it time before a kill.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/tributary"]
