"""Set-ups as people write them, rebuilt with names and values of our own.

The settings are read from them, and the doctor examines them.
"""

import json

KAFKA_DOCS = """
# The shape of config/connect-mirror-maker.properties in Kafka
clusters = oslo, rome
oslo.bootstrap.servers = oslo-1.invalid:9092, oslo-2.invalid:9092
rome.bootstrap.servers = rome-1.invalid:9092
oslo->rome.enabled = true
oslo->rome.topics = .*
rome->oslo.enabled = true
rome->oslo.topics = .*
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
"""
COMPOSE = """
# The shape of the compose stack of mm2-offset-map
clusters=source,target
source.bootstrap.servers=left.invalid:9092
target.bootstrap.servers=right.invalid:9092
source->target.enabled=true
target->source.enabled=false
source->target.topics=a.trips|b.trips
source->target.offset-syncs.topic.location=target
source->target.offset.lag.max=5
target->source.emit.heartbeats.enabled=false
replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
replication.factor=1
offset-syncs.topic.replication.factor=1
sync.topic.acls.enabled=false
"""
STRIMZI = """
# The shape of examples/mirror-maker/kafka-mirror-maker-2-*.yaml in Strimzi
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: copies}
spec:
  version: 4.0.0
  connectCluster: rome
  clusters:
    - alias: oslo
      bootstrapServers: oslo-kafka-bootstrap.invalid:9093
      tls:
        trustedCertificates:
          - {secretName: oslo-ca, pattern: "*.crt"}
      authentication:
        type: scram-sha-512
        username: copier
        passwordSecret: {secretName: copier-login, password: word}
    - alias: rome
      bootstrapServers: rome-kafka-bootstrap.invalid:9092
      config:
        config.storage.replication.factor: -1
        offset.storage.replication.factor: -1
        producer.enable.idempotence: true
  mirrors:
    - sourceCluster: oslo
      targetCluster: rome
      sourceConnector:
        tasksMax: 1
        config:
          replication.factor: -1
          offset-syncs.topic.replication.factor: -1
          sync.topic.acls.enabled: "false"
          refresh.topics.interval.seconds: 600
      checkpointConnector:
        config:
          sync.group.offsets.enabled: "false"
      topicsPattern: ".*"
      groupsPattern: ".*"
"""
MSK = json.dumps(
    {
        # The shape of the connectors that Amazon's migration samples give to a Connect worker
        "name": "mm2-copy",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "clusters": "old,new",
        "source.cluster.alias": "old",
        "target.cluster.alias": "new",
        "source.cluster.bootstrap.servers": "b-1.old.invalid:9098",
        "target.cluster.bootstrap.servers": "b-1.new.invalid:9098",
        "target.cluster.security.protocol": "PLAINTEXT",
        "topics": ".*",
        "tasks.max": "4",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "replication.policy.class": "com.example.msk.CustomMM2ReplicationPolicy",
        "replication.factor": "3",
        "offset-syncs.topic.replication.factor": "3",
        "sync.topic.configs.interval.seconds": "20",
        "refresh.topics.interval.seconds": "20",
        "producer.enable.idempotence": "true",
        "source.consumer.auto.offset.reset": "earliest",
        "consumer.group.id": "mm2-copy",
    }
)
