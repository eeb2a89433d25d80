package peers;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.*;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.state.*;

public final class Bench {
    static final Map<String, String> A = new HashMap<>();

    static String arg(String k, String d) { return A.getOrDefault(k, d); }
    static long num(String k, long d) { return Long.parseLong(arg(k, "" + d)); }

    static final LongAdder processed = new LongAdder(), downstream = new LongAdder();
    static volatile long firstNs;
    static volatile Proc atFirst;
    static boolean seen; // written by stream threads; a benign race

    static void tick() {
        if (!seen) { seen = true; firstNs = System.nanoTime(); atFirst = new Proc(); }
        processed.increment();
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Order { public String event_id, order_id, status; public double amount; public long ts; }
    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Customer { public String customer_id, name; public int bucket; }

    static <T> Serde<T> json(Class<T> c) {
        ObjectMapper m = new ObjectMapper();
        ObjectReader rd = m.readerFor(c);
        ObjectWriter wr = m.writerFor(c);
        return Serdes.serdeFrom(
            (t, v) -> { try { return v == null ? null : wr.writeValueAsBytes(v); } catch (Exception e) { throw new RuntimeException(e); } },
            (t, b) -> { try { return b == null ? null : rd.readValue(b); } catch (Exception e) { throw new RuntimeException(e); } });
    }

    public static void main(String[] args) throws Exception {
        for (int i = 1; i + 1 < args.length; i += 2) A.put(args[i].replaceFirst("^--", ""), args[i + 1]);
        switch (args[0]) {
            case "topics" -> topics();
            case "produce" -> produce();
            case "run" -> run();
            case "ttd" -> ttd();
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    static Admin admin() { return Admin.create(Map.<String, Object>of("bootstrap.servers", arg("brokers", "127.0.0.1:29092"))); }

    static void create(Admin ad, String... names) throws Exception {
        Set<String> have = ad.listTopics().names().get();
        List<NewTopic> l = new ArrayList<>();
        for (String n : names) if (!have.contains(n)) l.add(new NewTopic(n, (int) num("partitions", 6), (short) 1).configs(Map.of("retention.ms", "-1")));
        ad.createTopics(l).all().get();
    }

    static void topics() throws Exception {
        try (Admin ad = admin()) { create(ad, "orders", "orders-by-customer", "customers", "empty"); }
    }

    static void produce() throws Exception {
        topics();
        long n = num("n", 2_000_000), seed = num("seed", 1);
        Properties p = new Properties();
        p.put("bootstrap.servers", arg("brokers", "127.0.0.1:29092"));
        p.put("linger.ms", "20");
        p.put("batch.size", "262144");
        p.put("buffer.memory", "67108864");
        p.put("acks", "all");
        Proc a = new Proc();
        // base time: 2026-01-01T00:00:00Z, one hour of event time
        long base = num("base", 1767225600000L), step = 3_600_000_000L / n;
        long bytes = 0;
        try (var pr = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            for (int c = 0; c < Gen.CUSTOMERS; c++)
                pr.send(new ProducerRecord<>("customers", null, base - 1000, "c-" + c,
                    "{\"customer_id\":\"c-" + c + "\",\"name\":\"Customer " + c + "\",\"bucket\":" + c % 16 + "}"));
            Gen g = new Gen(seed, (int) num("keys", 1_000_000), base, step);
            for (long i = 0; i < n; i++) {
                g.step();
                bytes += g.value.length();
                pr.send(new ProducerRecord<>("orders", null, g.ts, "o-" + g.order, g.value));
                pr.send(new ProducerRecord<>("orders-by-customer", null, g.ts, "c-" + g.order % Gen.CUSTOMERS, g.value));
            }
        }
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("what", "produce");
        m.put("avg_value_bytes", bytes / n);
        Proc.report(m, a, new Proc(), 2 * n);
        System.out.println(Proc.json(m));
    }

    // ---- topologies -------------------------------------------------------------------------------------------

    static StreamsBuilder build(String w, String out, boolean cache) {
        StreamsBuilder sb = new StreamsBuilder();
        Serde<String> S = Serdes.String();
        Serde<byte[]> B = Serdes.ByteArray();
        boolean mem = arg("store", "rocks").equals("mem");
        switch (w) {
            case "a" -> sb.stream("orders", Consumed.with(B, B)).mapValues(v -> { tick(); return v; }).to(out, Produced.with(B, B));
            case "b" -> {
                var kv = Stores.keyValueStoreBuilder(mem ? Stores.inMemoryKeyValueStore("seen") : Stores.persistentKeyValueStore("seen"), S, Serdes.Long());
                sb.addStateStore(cache ? kv.withCachingEnabled() : kv);
                ObjectReader rd = new ObjectMapper().readerFor(Order.class);
                sb.stream("orders", Consumed.with(B, B)).processValues(() -> new FixedKeyProcessor<byte[], byte[], byte[]>() {
                    FixedKeyProcessorContext<byte[], byte[]> ctx;
                    KeyValueStore<String, Long> st;
                    public void init(FixedKeyProcessorContext<byte[], byte[]> c) { ctx = c; st = c.getStateStore("seen"); }
                    public void process(FixedKeyRecord<byte[], byte[]> r) {
                        tick();
                        Order o;
                        try { o = rd.readValue(r.value()); } catch (Exception e) { throw new RuntimeException(e); }
                        if (st.get(o.event_id) == null) { st.put(o.event_id, o.ts); downstream.increment(); ctx.forward(r); }
                    }
                }, "seen").to(out, Produced.with(B, B));
            }
            case "c" -> {
                Serde<Order> O = json(Order.class);
                Serde<Customer> C = json(Customer.class);
                KTable<String, Customer> t = sb.table("customers", Consumed.with(S, C), mem ? Materialized.as(Stores.inMemoryKeyValueStore("customers")) : Materialized.as("customers"));
                sb.stream("orders-by-customer", Consumed.with(S, O)).peek((k, v) -> tick())
                    .leftJoin(t, (o, c) -> o.status + "|" + (c == null ? "none" : c.bucket), Joined.with(S, O, C))
                    .groupBy((k, v) -> v, Grouped.with(S, S))
                    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(num("grace-min", 120))))
                    .aggregate(() -> 0L, (k, v, n) -> { downstream.increment(); return n + 1; }, Materialized.<String, Long, WindowStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("windows").withKeySerde(S).withValueSerde(Serdes.Long()))
                    .toStream((k, v) -> k.key() + "@" + k.window().start())
                    .to(out, Produced.with(S, Serdes.Long()));
            }
            case "d" -> {
                var g = sb.stream("orders", Consumed.with(S, B)).peek((k, v) -> tick()).groupByKey(Grouped.with(S, B))
                    .count(mem ? Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withKeySerde(S).withValueSerde(Serdes.Long())
                               : Materialized.<String, Long, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("counts").withKeySerde(S).withValueSerde(Serdes.Long()));
                if (arg("sink", "false").equals("true")) g.toStream().to(out, Produced.with(S, Serdes.Long()));
            }
            case "h" -> sb.stream("empty", Consumed.with(B, B)).foreach((k, v) -> tick());
            default -> throw new IllegalArgumentException(w);
        }
        return sb;
    }

    static Properties props(String app) {
        Properties p = new Properties();
        p.put("application.id", app);
        p.put("bootstrap.servers", arg("brokers", "127.0.0.1:29092"));
        p.put("num.stream.threads", arg("threads", "1"));
        p.put("processing.guarantee", arg("mode", "eos").equals("eos") ? "exactly_once_v2" : "at_least_once");
        p.put("commit.interval.ms", arg("commit", "100"));
        p.put("statestore.cache.max.bytes", arg("cache", "10485760"));
        p.put("state.dir", arg("state-dir", "state"));
        p.put("auto.offset.reset", "earliest");
        if (A.containsKey("session-timeout")) p.put("session.timeout.ms", arg("session-timeout", ""));
        if (A.containsKey("session-timeout")) p.put("heartbeat.interval.ms", "2000");
        if (A.containsKey("group-protocol")) p.put("group.protocol", arg("group-protocol", "classic"));
        // any further settings: --conf 'name=value;name=value'
        for (String kv : arg("conf", "").split(";")) if (kv.contains("=")) p.put(kv.substring(0, kv.indexOf('=')), kv.substring(kv.indexOf('=') + 1));
        if (arg("tuned", "false").equals("true")) {
            p.put("producer.batch.size", "262144");
            p.put("producer.buffer.memory", "67108864");
            p.put("main.consumer.max.poll.records", "5000");
            p.put("main.consumer.fetch.min.bytes", "65536");
            p.put("main.consumer.max.partition.fetch.bytes", "4194304");
        }
        return p;
    }

    static void run() throws Exception {
        String w = arg("w", "a");
        String app = arg("app", "ks-" + w + "-" + System.currentTimeMillis());
        String out = app + "-out";
        long jvmStart = ManagementFactory.getRuntimeMXBean().getStartTime();
        long mainMs = System.currentTimeMillis(), mainNs = System.nanoTime();
        long killAt = num("kill-at", 0);
        boolean restoreOnly = arg("restore-only", "false").equals("true");
        String in = w.equals("h") ? "empty" : w.equals("c") ? "orders-by-customer" : "orders";
        Path state = Path.of(arg("state-dir", "state"), app);
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("what", "kafka-streams");
        m.put("w", w);
        for (String k : List.of("mode", "commit", "cache", "threads", "tuned", "store", "sink", "group-protocol", "session-timeout", "leave", "conf", "note")) if (A.containsKey(k)) m.put(k, A.get(k));
        m.put("load1", Double.parseDouble(Files.readString(Path.of("/proc/loadavg")).split(" ")[0]));
        m.put("state_bytes_at_start", Proc.du(state));
        Admin ad = admin();
        if (!w.equals("h")) create(ad, out);
        Map<TopicPartition, OffsetSpec> spec = new HashMap<>();
        for (int i = 0; i < num("partitions", 6); i++) spec.put(new TopicPartition(in, i), OffsetSpec.latest());
        Map<TopicPartition, Long> ends = new HashMap<>();
        ad.listOffsets(spec).all().get().forEach((k, v) -> ends.put(k, v.offset()));
        long total = ends.values().stream().mapToLong(x -> x).sum();

        Topology topo = build(w, out, num("cache", 10485760) > 0).build();
        Proc beforeStart = new Proc();
        long startNs = System.nanoTime();
        KafkaStreams ks = new KafkaStreams(topo, props(app));
        CountDownLatch running = new CountDownLatch(1);
        AtomicReference<Proc> atRunning = new AtomicReference<>();
        ks.setStateListener((n, o) -> {
            System.err.println("STATE " + o + " -> " + n + " at " + (System.nanoTime() - startNs) / 1000000 + " ms after start");
            if (n == KafkaStreams.State.RUNNING && atRunning.compareAndSet(null, new Proc())) running.countDown();
            if (n == KafkaStreams.State.ERROR) { System.err.println("ERROR state"); Runtime.getRuntime().halt(3); }
        });
        ConcurrentHashMap<String, Long> restored = new ConcurrentHashMap<>();
        AtomicLong toRestore = new AtomicLong(), restStart = new AtomicLong();
        ks.setGlobalStateRestoreListener(new StateRestoreListener() {
            public void onRestoreStart(TopicPartition tp, String s, long a, long b) { toRestore.addAndGet(b - a); restStart.compareAndSet(0, System.nanoTime()); System.err.println("RESTORE start " + tp + " " + a + ".." + b); }
            public void onBatchRestored(TopicPartition tp, String s, long e, long n) { }
            public void onRestoreEnd(TopicPartition tp, String s, long n) { restored.put(tp.toString(), n); System.err.println("RESTORE end " + tp + " " + n); }
        });
        ks.start();
        running.await();
        Proc r0 = atRunning.get();
        m.put("jvmstart_to_running_ms", mainMs - jvmStart + (r0.ns - mainNs) / 1_000_000);
        m.put("start_to_running_ms", (r0.ns - startNs) / 1_000_000);
        if (w.equals("h")) {
            Thread.sleep(num("linger", 2000));
            Proc.report(m, beforeStart, new Proc(), 0);
            System.out.println(Proc.json(m));
            close(ks, ad, app, out);
            return;
        }
        Proc end = null;
        boolean done = false;
        long lastPrint = System.nanoTime();
        long committedAtFirst = -1, lastSum = -1, lastMove = System.nanoTime();
        while (!done) {
            Thread.sleep(restoreOnly ? 5 : 50);
            if (killAt > 0 && processed.sum() >= killAt) {
                System.err.println("KILL at processed=" + processed.sum());
                new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor();
                Thread.sleep(10000);
            }
            if (System.nanoTime() - lastPrint > 2_000_000_000L) { System.err.println("PROGRESS " + processed.sum() + " " + downstream.sum()); lastPrint = System.nanoTime(); }
            if (killAt > 0) continue;
            if (processed.sum() + downstream.sum() != lastSum) { lastSum = processed.sum() + downstream.sum(); lastMove = System.nanoTime(); }
            if (System.nanoTime() - lastMove > 120_000_000_000L) { System.err.println("STUCK at " + processed.sum() + " " + downstream.sum()); Runtime.getRuntime().halt(4); }
            long c = 0;
            boolean rep = true;
            var off = ad.listConsumerGroupOffsets(app).partitionsToOffsetAndMetadata().get();
            Map<TopicPartition, OffsetSpec> reps = new HashMap<>();
            for (var e : off.entrySet()) {
                if (e.getValue() == null) continue;
                if (ends.containsKey(e.getKey())) c += e.getValue().offset();
                else if (e.getKey().topic().endsWith("-repartition")) reps.put(e.getKey(), OffsetSpec.latest());
            }
            if (committedAtFirst < 0) committedAtFirst = c;
            if (c < total) continue;
            if (w.equals("c")) {
                if (downstream.sum() < total && committedAtFirst == 0) continue;
                var le = ad.listOffsets(reps).all().get();
                for (var e : le.entrySet()) if (e.getValue().offset() - off.get(e.getKey()).offset() > 3) rep = false;
                if (!rep) continue;
            }
            end = new Proc();
            done = true;
        }
        // a restart reads on from the committed offset: only what this process handled counts
        long n = processed.sum();
        if (n > 0) m.put("start_to_first_record_ms", (firstNs - startNs) / 1_000_000);
        m.put("input_total", total);
        if (downstream.sum() > 0) m.put("downstream", downstream.sum());
        long rest = restored.values().stream().mapToLong(x -> x).sum();
        if (restoreOnly || !restored.isEmpty()) {
            m.put("restored_records", rest);
            m.put("offsets_to_restore", toRestore.get());
        }
        m.put("state_bytes_at_end", Proc.du(state));
        long cl = 0;
        for (Path d : (Iterable<Path>) Files.list(Path.of(arg("broker-data", "../broker/data"))).filter(x -> x.getFileName().toString().startsWith(app) && x.getFileName().toString().contains("-changelog"))::iterator)
            for (Path f : (Iterable<Path>) Files.list(d).filter(x -> x.toString().endsWith(".log"))::iterator) cl += Files.size(f);
        m.put("changelog_bytes", cl);
        if (restoreOnly) {
            double s = (r0.ns - restStart.get()) / 1e9;
            m.put("start_to_restore_begin_ms", (restStart.get() - startNs) / 1000000);
            m.put("restore_begin_to_running_ms", (r0.ns - restStart.get()) / 1000000);
            m.put("restore_rec_per_s", Math.round(rest / s));
            m.put("restore_mb_per_s", Proc.r(cl / 1e6 / s));
            Proc.report(m, beforeStart, r0, rest);
        } else Proc.report(m, atFirst != null && atFirst.ns < r0.ns ? atFirst : r0, end, n);
        M = m;
        close(ks, ad, app, out);
    }

    static Map<String, Object> M;

    static void close(KafkaStreams ks, Admin ad, String app, String out) throws Exception {
        long t = System.nanoTime();
        if (arg("leave", "true").equals("true"))
            ks.close(org.apache.kafka.streams.CloseOptions.timeout(Duration.ofSeconds(60)).withGroupMembershipOperation(org.apache.kafka.streams.CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        else ks.close(Duration.ofSeconds(60));
        if (M != null) {
            M.put("close_ms", (System.nanoTime() - t) / 1000000);
            M.put("state_bytes_closed", Proc.du(Path.of(arg("state-dir", "state"), app)));
            System.out.println(Proc.json(M));
        }
        if (arg("keep", "false").equals("true")) return;
        Path state = Path.of(arg("state-dir", "state"), app);
        if (Files.exists(state)) try (var s = Files.walk(state)) { s.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete()); }
        ad.deleteTopics(ad.listTopics().names().get().stream().filter(x -> x.startsWith(app)).toList()).all().get();
        try { ad.deleteConsumerGroups(List.of(app)).all().get(); } catch (Exception e) { }
    }

    // ---- TopologyTestDriver -----------------------------------------------------------------------------------

    static void ttd() throws Exception {
        String w = arg("w", "a");
        int n = (int) num("n", 200_000);
        long base = 1767225600000L;
        Gen g = new Gen(num("seed", 1), (int) num("keys", 100_000), base, 3_600_000_000L / n);
        String[] k = new String[n], v = new String[n];
        long[] ts = new long[n];
        for (int i = 0; i < n; i++) { g.step(); k[i] = w.equals("c") ? "c-" + g.order % Gen.CUSTOMERS : "o-" + g.order; v[i] = g.value; ts[i] = g.ts; }
        for (int round = 0; round < num("rounds", 3); round++) {
            processed.reset();
            Path dir = Files.createTempDirectory("ttd");
            A.put("state-dir", dir.toString());
            Properties p = props("ttd-" + round);
            p.put("processing.guarantee", "at_least_once");
            Proc s0 = new Proc();
            Topology topo = build(w, "out", num("cache", 10485760) > 0).build();
            try (TopologyTestDriver d = new TopologyTestDriver(topo, p)) {
                Proc up = new Proc();
                long outN = 0;
                if (w.equals("c")) {
                    var ct = d.createInputTopic("customers", new StringSerializer(), new StringSerializer());
                    for (int c = 0; c < Gen.CUSTOMERS; c++) ct.pipeInput("c-" + c, "{\"customer_id\":\"c-" + c + "\",\"name\":\"Customer " + c + "\",\"bucket\":" + c % 16 + "}", base - 1000);
                }
                Proc a = new Proc();
                var in = d.createInputTopic(w.equals("c") ? "orders-by-customer" : "orders", new StringSerializer(), new StringSerializer());
                var ot = arg("sink", "true").equals("true") || !w.equals("d") ? d.createOutputTopic("out", new ByteArrayDeserializer(), new ByteArrayDeserializer()) : null;
                for (int i = 0; i < n; i++) {
                    in.pipeInput(k[i], v[i], ts[i]);
                    if (ot != null) while (!ot.isEmpty()) { ot.readRecord(); outN++; }
                }
                Proc b = new Proc();
                Map<String, Object> m = new LinkedHashMap<>();
                m.put("what", "ttd");
                m.put("w", w);
                m.put("store", arg("store", "rocks"));
                m.put("round", round);
                m.put("out", outN);
                m.put("driver_start_ms", (up.ns - s0.ns) / 1000000);
                Proc.report(m, a, b, n);
                System.out.println(Proc.json(m));
            }
            try (var s = Files.walk(dir)) { s.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete()); }
        }
    }
}
