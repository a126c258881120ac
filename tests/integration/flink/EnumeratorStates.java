import java.util.Set;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.source.coordinator.SourceCoordinator;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;
import org.apache.kafka.common.TopicPartition;

/** Prints what ReadKafkaPositions makes of states that Flink's own coordinator wrote. */
public final class EnumeratorStates {
    public static void main(String[] arguments) throws Exception {
        KafkaPartitionSplit read = split(0, 42);
        KafkaPartitionSplit unread = split(1, 7);
        print("assigned", read, new KafkaSourceEnumState(Set.of(split(0, 0)), Set.of(), true));
        print("unassigned", read, new KafkaSourceEnumState(Set.of(read), Set.of(unread), true));
        print("lost", read, new KafkaSourceEnumState(Set.of(read, unread), Set.of(), true));
        print("twice", read, new KafkaSourceEnumState(Set.of(), Set.of(split(0, 0)), true));
        print("undiscovered", read, new KafkaSourceEnumState(Set.of(read), Set.of(), false));
    }

    private static KafkaPartitionSplit split(int partition, long offset) {
        return new KafkaPartitionSplit(new TopicPartition("orders", partition), offset);
    }

    private static void print(String name, KafkaPartitionSplit held, KafkaSourceEnumState state)
            throws Exception {
        var operator = new OperatorState("source", "orders-source", new OperatorID(), 1, 1);
        operator.setCoordinatorState(new ByteStreamStateHandle("state", write(state)));
        var reader = new ReadKafkaPositions("savepoint", "orders-source");
        reader.add(held);
        try {
            reader.readEnumerator(operator);
            System.out.println(name + ": " + reader.toJson());
        } catch (ReadKafkaPositions.Refused refused) {
            System.out.println(name + ": " + refused.getMessage());
        }
    }

    private static byte[] write(KafkaSourceEnumState state) throws Exception {
        var write = SourceCoordinator.class.getDeclaredMethod(
                "writeCheckpointBytes", Object.class, SimpleVersionedSerializer.class);
        write.setAccessible(true);
        return (byte[]) write.invoke(null, state, new KafkaSourceEnumStateSerializer());
    }
}
