import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A job of two subtasks that notes each record, and stops with a savepoint in the middle. */
public final class KafkaJob {
    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        List<String> topics = List.of(arguments[1].split(","));
        Path records = Path.of(arguments[2]);
        int enough = Integer.parseInt(arguments[3]);
        String folder = arguments[4];
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(2);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(servers)
                .setTopics(topics)
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(new Places())
                // Little at once, so that it reads on in all partitions.
                .setProperty("max.partition.fetch.bytes", "200")
                .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
                .uid("orders-source")
                .map(new Note(records.toString()))
                .uid("notes")
                .sinkTo(new DiscardingSink<>());
        JobClient job = environment.executeAsync();
        while (!Files.exists(records) || Files.lines(records).count() < enough) {
            if (job.getJobStatus().get().isGloballyTerminalState()) {
                job.getJobExecutionResult().get();
            }
            Thread.sleep(20);
        }
        System.out.println(
                job.stopWithSavepoint(false, folder, SavepointFormatType.valueOf(arguments[5])).get());
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

    /** Writes a line for each record, slowly, so that the job stops in the middle of the topic. */
    static final class Note implements MapFunction<String, String> {
        private final String file;

        Note(String file) {
            this.file = file;
        }

        @Override
        public String map(String place) throws Exception {
            synchronized (KafkaJob.class) {
                Files.writeString(Path.of(file), place + "\n",
                        StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
            Thread.sleep(2);
            return place;
        }
    }
}
