import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A job of two subtasks that notes each record, and ends in the middle of its topics.
 *
 * <p>{@code KafkaJob <servers> <topics> <file of the notes> <partitions> <folder> <kind>}: it
 * prints the savepoint that it stops with when it has read so many partitions; or, of the kind {@code UNALIGNED}, the
 * newest of its checkpoints, which hold records in flight.
 */
public final class KafkaJob {
    public static void main(String[] arguments) throws Exception {
        Path records = Path.of(arguments[2]);
        Path folder = Path.of(arguments[4]);
        boolean unaligned = arguments[5].equals("UNALIGNED");
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(
                2, unaligned ? checkpoints(folder) : new Configuration());
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(arguments[0])
                .setTopics(List.of(arguments[1].split(",")))
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(new Places())
                // Little at once, so that it reads on in all partitions.
                .setProperty("max.partition.fetch.bytes", "200")
                .build();
        var places = environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
                .uid("orders-source");
        // Records are in flight only between tasks.
        (unaligned ? places.rebalance() : places)
                .map(new Note(records.toString(), unaligned ? 50 : 2))
                .uid("notes")
                .sinkTo(new DiscardingSink<>());
        JobClient job = environment.executeAsync();
        while (!hasRead(records, Integer.parseInt(arguments[3]))) {
            if (job.getJobStatus().get().isGloballyTerminalState()) {
                job.getJobExecutionResult().get();
            }
            Thread.sleep(20);
        }
        System.out.println(unaligned ? cancel(job, folder) : job.stopWithSavepoint(
                false, folder.toString(), SavepointFormatType.valueOf(arguments[5])).get());
    }

    /** Tells whether so many partitions were read, each of them for a while. */
    private static boolean hasRead(Path records, int partitions) throws Exception {
        if (!Files.exists(records)) {
            return false;
        }
        var counts = Files.readAllLines(records).stream().collect(Collectors.groupingBy(
                each -> each.substring(0, each.lastIndexOf(' ')), Collectors.counting()));
        return counts.values().stream().filter(each -> each >= 20).count() == partitions;
    }

    private static Configuration checkpoints(Path folder) {
        return Configuration.fromMap(Map.of(
                "execution.checkpointing.interval", "200 ms",
                "execution.checkpointing.unaligned.enabled", "true",
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION",
                "execution.checkpointing.dir", folder.toUri().toString()));
    }

    private static Path cancel(JobClient job, Path folder) throws Exception {
        job.cancel().get();
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(each -> each.endsWith("_metadata"))
                    .max(Comparator.comparing(each -> each.toFile().lastModified()))
                    .orElseThrow().getParent();
        }
    }

    /** Where a record is: topic, partition and offset. */
    static final class Places implements KafkaRecordDeserializationSchema<String> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> out) {
            out.collect(record.topic() + " " + record.partition() + " " + record.offset());
        }

        @Override
        public org.apache.flink.api.common.typeinfo.TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }

    /** Writes a line for each record, slowly, so that the job ends in the middle of its topics. */
    static final class Note implements MapFunction<String, String> {
        private final String file;
        private final long millis;

        Note(String file, long millis) {
            this.file = file;
            this.millis = millis;
        }

        @Override
        public String map(String place) throws Exception {
            synchronized (KafkaJob.class) {
                Files.writeString(Path.of(file), place + "\n",
                        StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
            Thread.sleep(millis);
            return place;
        }
    }
}
