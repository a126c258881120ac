import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.util.Comparator;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.io.SimpleVersionedSerialization;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.runtime.SavepointLoader;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints the positions of a Kafka source in a Flink savepoint, as Spark's JSON, in one line.
 *
 * <p>{@code java ReadKafkaPositions.java <savepoint> <uid of the source> [<consumer.properties>]}
 *
 * <p>A position is the next offset to read: {@code KafkaRecordEmitter} sets the split's offset to
 * that of the record + 1. The readers keep their splits in the operator state {@code
 * SourceReaderState} ({@code SourceOperator.SPLITS_STATE_DESC}); the enumerator keeps those that no
 * reader has yet in the state of the {@code SourceCoordinator}. Both are read: a partition that
 * neither of them can place is an error.
 *
 * <p>A split without a record yet has the mark -2 (earliest). It becomes the partition's first
 * offset if the properties of a consumer of the source cluster are given.
 */
public final class ReadKafkaPositions {
    private static final String READER_STATE = "SourceReaderState";

    private final String savepoint;
    private final String uid;
    private final TreeMap<String, TreeMap<Integer, Long>> positions = new TreeMap<>();

    ReadKafkaPositions(String savepoint, String uid) {
        this.savepoint = savepoint;
        this.uid = uid;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 2 || arguments.length > 3) {
            System.err.println(
                    "usage: ReadKafkaPositions <savepoint> <uid of the source> [<consumer.properties>]");
            System.exit(2);
        }
        try {
            System.out.println(read(arguments));
        } catch (Refused refused) {
            System.err.println(refused.getMessage());
            System.exit(1);
        }
    }

    private static String read(String[] arguments) throws Exception {
        ReadKafkaPositions reader = new ReadKafkaPositions(arguments[0], arguments[1]);
        OperatorState state = reader.findOperator();
        reader.readReaders();
        reader.readEnumerator(state);
        reader.replaceEarliest(arguments.length == 3 ? arguments[2] : null);
        return reader.toJson();
    }

    private OperatorState findOperator() throws IOException {
        OperatorID id = OperatorIdentifier.forUid(uid).getOperatorId();
        var operators = SavepointLoader.loadSavepointMetadata(savepoint).getOperatorStates();
        if (operators.stream().anyMatch(ReadKafkaPositions::hasRecordsInFlight)) {
            throw new Refused(savepoint + " is an unaligned checkpoint with records in flight: the source "
                    + "counts them as read, and no operator has seen them. Take a savepoint");
        }
        for (OperatorState operator : operators) {
            if (operator.getOperatorID().equals(id)) {
                return operator;
            }
        }
        String known = operators.stream()
                .map(each -> each.getOperatorUid().orElse(each.getOperatorID().toString()))
                .sorted().collect(Collectors.joining(", "));
        throw new Refused(savepoint + " has no operator with the uid " + uid + "; it has " + known
                + ". Give the uid(...) of the Kafka source");
    }

    private static boolean hasRecordsInFlight(OperatorState operator) {
        return operator.getStates().stream().anyMatch(subtask ->
                !subtask.getInputChannelState().isEmpty()
                        || !subtask.getResultSubpartitionState().isEmpty());
    }

    /** Reads the splits that readers hold, of all subtasks. */
    private void readReaders() throws Exception {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setParallelism(1);
        var splits = SavepointReader.read(environment, savepoint).readListState(
                OperatorIdentifier.forUid(uid),
                READER_STATE,
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        var serializer = new KafkaPartitionSplitSerializer();
        try (CloseableIterator<byte[]> states = splits.executeAndCollect()) {
            while (states.hasNext()) {
                add(SimpleVersionedSerialization.readVersionAndDeSerialize(
                        serializer, states.next()));
            }
        }
    }

    /** Reads what the enumerator knows: the layout is of {@code SourceCoordinator.toBytes}. */
    void readEnumerator(OperatorState operator) throws IOException {
        if (operator.getCoordinatorState() == null) {
            throw new Refused("the operator " + uid + " has no coordinator: it is not a Kafka source");
        }
        KafkaSourceEnumState state;
        try (DataInputStream in = new DataInputStream(
                new ByteArrayInputStream(operator.getCoordinatorState().getData()))) {
            in.readInt(); // the version of this layout
            int version = in.readInt();
            byte[] bytes = in.readNBytes(in.readInt());
            state = new KafkaSourceEnumStateSerializer().deserialize(version, bytes);
        }
        if (!state.initialDiscoveryFinished()) {
            throw new Refused("the source " + uid + " had not yet found its partitions, so "
                    + savepoint + " may lack some: take a savepoint later");
        }
        Set<String> lost = new TreeSet<>();
        for (KafkaPartitionSplit split : state.assignedSplits()) {
            if (!holds(split)) {
                lost.add(split.splitId());
            }
        }
        if (!lost.isEmpty()) {
            throw new Refused("no reader holds " + lost + ", which the enumerator has assigned: the source is "
                    + "bounded and has read them to the end, or the savepoint is incomplete");
        }
        for (KafkaPartitionSplit split : state.unassignedSplits()) {
            add(split);
        }
    }

    private boolean holds(KafkaPartitionSplit split) {
        var partitions = positions.get(split.getTopic());
        return partitions != null && partitions.containsKey(split.getPartition());
    }

    void add(KafkaPartitionSplit split) {
        Long other = positions.computeIfAbsent(split.getTopic(), topic -> new TreeMap<>())
                .put(split.getPartition(), split.getStartingOffset());
        if (other != null) {
            throw new Refused(split.splitId() + " is held twice, at " + other + " and at "
                    + split.getStartingOffset());
        }
    }

    /** Replaces the mark of splits of which no record was read; other marks are refused. */
    private void replaceEarliest(String propertiesFile) throws IOException {
        Set<TopicPartition> unread = new TreeSet<>(
                Comparator.comparing(TopicPartition::toString));
        positions.forEach((topic, partitions) -> partitions.forEach((partition, position) -> {
            TopicPartition place = new TopicPartition(topic, partition);
            if (position == KafkaPartitionSplit.EARLIEST_OFFSET) {
                unread.add(place);
            } else if (position < 0) {
                throw new Refused(place + " has no offset but the mark " + position + " (-1 latest, -3 the "
                        + "group's, else unknown): let the job read on, then take a savepoint");
            }
        }));
        if (unread.isEmpty()) {
            return;
        }
        if (propertiesFile == null) {
            throw new Refused("of " + unread + " no record was read, and they begin at the earliest offset; "
                    + "give the properties of a consumer of the source cluster, to read it there");
        }
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(propertiesFile)) {
            properties.load(file);
        }
        var bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.beginningOffsets(unread).forEach((place, offset) ->
                    positions.get(place.topic()).put(place.partition(), offset));
        }
    }

    String toJson() {
        if (positions.isEmpty()) {
            throw new Refused("the source " + uid + " has no split in " + savepoint);
        }
        return positions.entrySet().stream()
                .map(topic -> "\"" + topic.getKey() + "\":" + topic.getValue().entrySet().stream()
                        .map(each -> "\"" + each.getKey() + "\":" + each.getValue())
                        .collect(Collectors.joining(",", "{", "}")))
                .collect(Collectors.joining(",", "{", "}"));
    }

    /** What no position can be told for; nothing is printed to the standard output then. */
    static final class Refused extends RuntimeException {
        Refused(String problem) {
            super(problem);
        }
    }
}
