#!/bin/sh
# Sets up a one-node Kafka (KRaft) below /opt/kafka for kafka.service. Run it as root, with Kafka's archive
# (kafka_2.13-4.3.1.tgz from https://kafka.apache.org/downloads): setup-kafka.sh kafka_2.13-4.3.1.tgz
# Running it again changes nothing that is there: the storage keeps its cluster id.
# PREFIX puts everything below another folder, and then makes no user, for tests.
set -eu
archive="${1:?usage: setup-kafka.sh kafka_2.13-VERSION.tgz}"
prefix="${PREFIX:-}"
host="${KAFKA_HOST:-localhost}"

mkdir -p "$prefix/opt/kafka" "$prefix/etc/kafka" "$prefix/var/lib/kafka/data" "$prefix/etc/systemd/system"
[ -x "$prefix/opt/kafka/bin/kafka-server-start.sh" ] || tar -xzf "$archive" -C "$prefix/opt/kafka" --strip-components=1
if [ -z "$prefix" ]; then
  id kafka >/dev/null 2>&1 || useradd --system --home-dir /var/lib/kafka --shell /usr/sbin/nologin kafka
fi

config="$prefix/etc/kafka/server.properties"
[ -f "$config" ] || cat >"$config" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://localhost:9093
advertised.listeners=PLAINTEXT://$host:9092
controller.listener.names=CONTROLLER
log.dirs=/var/lib/kafka/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
EOF

if [ -z "$prefix" ]; then
  [ -f /var/lib/kafka/data/meta.properties ] ||
    /opt/kafka/bin/kafka-storage.sh format --standalone --cluster-id "$(/opt/kafka/bin/kafka-storage.sh random-uuid)" --config "$config"
  chown -R kafka:kafka /var/lib/kafka
  install -m 644 "$(dirname "$0")/kafka.service" /etc/systemd/system/kafka.service
  systemctl daemon-reload
  systemctl enable --now kafka.service
fi
echo "Kafka is set up; its brokers are $host:9092"
