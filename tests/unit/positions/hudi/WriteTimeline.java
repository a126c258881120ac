import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.HoodieAvroPayload;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieActiveTimeline;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * Wrote the timelines beside this file, with Hudi 1.0.2's own classes; the tests read the copies.
 *
 * <p>{@code java -cp hudi-spark3.5-bundle_2.12-1.0.2.jar:<PySpark's jars>/* WriteTimeline.java
 * file:///<folder> <table version: 6 or 8> <COPY_ON_WRITE or MERGE_ON_READ>}
 *
 * <p>Of the writes the second has the newest checkpoint: the third has none, the fourth was taken
 * back, the fifth has not ended.
 */
public class WriteTimeline {
  static HoodieTableMetaClient client;

  public static void main(String[] args) throws Exception {
    int version = Integer.parseInt(args[1]);
    StorageConfiguration<?> conf = HadoopFSUtils.getStorageConf(new Configuration());
    client = HoodieTableMetaClient.newTableBuilder()
        .setTableType(HoodieTableType.valueOf(args[2]))
        .setTableName("orders")
        .setTableVersion(version)
        .setPayloadClassName(HoodieAvroPayload.class.getName())
        .initTable(conf, args[0]);
    String action = args[2].equals("MERGE_ON_READ") ? "deltacommit" : "commit";
    String key = version >= 8 ? "streamer.checkpoint.key.v2" : "deltastreamer.checkpoint.key";
    complete("20260101000000000", action, Map.of(key, "orders,0:10,1:0"));
    complete("20260101000100000", action, Map.of(key, "orders,0:25,1:7"));
    complete("20260101000200000", action, Map.of());
    HoodieInstant undone = complete("20260101000300000", action, Map.of(key, "orders,0:90,1:90"));
    client.reloadActiveTimeline().revertToInflight(undone);
    begin("20260101000400000", action);
  }

  static HoodieInstant begin(String time, String action) {
    HoodieActiveTimeline timeline = client.reloadActiveTimeline();
    HoodieInstant requested = client.getInstantGenerator()
        .createNewInstant(HoodieInstant.State.REQUESTED, action, time);
    timeline.createNewInstant(requested);
    timeline.transitionRequestedToInflight(requested, Option.empty());
    return client.getInstantGenerator()
        .createNewInstant(HoodieInstant.State.INFLIGHT, action, time);
  }

  static HoodieInstant complete(String time, String action, Map<String, String> extra) throws Exception {
    HoodieInstant inflight = begin(time, action);
    HoodieCommitMetadata metadata = new HoodieCommitMetadata();
    metadata.setOperationType(WriteOperationType.UPSERT);
    metadata.addMetadata("schema", "{\"type\":\"record\",\"name\":\"order\",\"fields\":[]}");
    extra.forEach(metadata::addMetadata);
    client.reloadActiveTimeline().saveAsComplete(inflight, Option.of(metadata));
    return client.reloadActiveTimeline().getReverseOrderedInstants()
        .filter(each -> each.requestedTime().equals(time)).findFirst().get();
  }
}
