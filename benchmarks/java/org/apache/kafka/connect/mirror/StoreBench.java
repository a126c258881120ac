package org.apache.kafka.connect.mirror;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Drives MirrorMaker 2's own OffsetSyncStore, whose methods are open to this package alone.
 *
 * <p>{@code ask} answers questions about syncs, {@code read} reads a topic of syncs, {@code
 * translate} asks about syncs on a line. The last two print a count and the nanoseconds it took.
 */
final class StoreBench {
    /** Of the answers, so that none can be optimised away. */
    private static volatile long checksum;

    /** A store that is fed from here instead of from Kafka. */
    private static final class Store extends OffsetSyncStore {
        /** Makes a store that has been started, and had nothing to read then. */
        static Store running() {
            Store store = new Store();
            store.start(false);
            return store;
        }

        @Override
        void backingStoreStart() {}

        /** Takes {@code sync} as if it had been there when MirrorMaker 2 was started. */
        void startWith(OffsetSync sync) {
            readToEnd = false;
            initializationMustReadToEnd = true;
            take(sync);
            readToEnd = true;
        }

        void take(OffsetSync sync) {
            handleRecord(
                    new ConsumerRecord<>("syncs", 0, 0, sync.recordKey(), sync.recordValue()));
        }

        long translate(TopicPartition place, long position) {
            return translateDownstream("group", place, position).orElse(-1);
        }
    }

    public static void main(String[] arguments) throws IOException {
        switch (arguments[0]) {
            case "ask" -> ask();
            case "read" -> read(arguments[1], arguments[2]);
            case "translate" -> translate(
                    Integer.parseInt(arguments[1]),
                    Integer.parseInt(arguments[2]),
                    Integer.parseInt(arguments[3]),
                    Integer.parseInt(arguments[4]),
                    Integer.parseInt(arguments[5]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    /**
     * Reads syncs and positions (a count, then partition, upstream and downstream; a count, then
     * partition and position), and writes two answers to each: of a store that was running all the
     * time, and of one that was started when all syncs were there; below 0 is none.
     */
    private static void ask() throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        Store running = Store.running();
        Store restarted = Store.running();
        for (int left = in.readInt(); left > 0; left--) {
            TopicPartition place = new TopicPartition("topic", in.readInt());
            OffsetSync sync = new OffsetSync(place, in.readLong(), in.readLong());
            running.take(sync);
            restarted.startWith(sync);
        }
        for (int left = in.readInt(); left > 0; left--) {
            TopicPartition place = new TopicPartition("topic", in.readInt());
            long position = in.readLong();
            out.writeLong(running.translate(place, position));
            out.writeLong(restarted.translate(place, position));
        }
        out.flush();
    }

    /** Reads a topic from its beginning to its end into a store. */
    private static void read(String servers, String topic) {
        long begin = System.nanoTime();
        Store store = Store.running();
        long read = 0;
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(Map.of("bootstrap.servers", servers), bytes, bytes)) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            while (consumer.position(place) < end) {
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(100))) {
                    store.handleRecord(each);
                    read++;
                }
            }
        }
        report(read, System.nanoTime() - begin);
    }

    /** Asks about positions over all of each partition; the fastest of some rounds counts. */
    private static void translate(
            int partitions, int syncs, int positions, long step, int rounds) {
        Store store = Store.running();
        for (int partition = 0; partition < partitions; partition++) {
            TopicPartition place = new TopicPartition("topic", partition);
            for (long number = 0; number < syncs; number++) {
                // As benchmarks/load.py makes them.
                long jitter = (number * 31 + partition * 17) % 61;
                store.take(new OffsetSync(place, number * 100 + jitter, number * 97 + jitter));
            }
        }
        long span = 100L * syncs;
        long sum = 0;
        long fastest = Long.MAX_VALUE;
        for (int round = 0; round < rounds; round++) {
            long begin = System.nanoTime();
            for (int partition = 0; partition < partitions; partition++) {
                TopicPartition place = new TopicPartition("topic", partition);
                for (long number = 0; number < positions; number++) {
                    sum += store.translate(place, number * step % span);
                }
            }
            fastest = Math.min(fastest, System.nanoTime() - begin);
        }
        report((long) partitions * positions, fastest);
        checksum = sum;
    }

    private static void report(long count, long nanoseconds) {
        System.out.println(count + " " + nanoseconds);
    }
}
