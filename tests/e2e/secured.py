"""A demo between secured clusters, as docs/security.md tells users to set it up.

Airflow logs in to the source by SCRAM, in Java's words, and to the target by OAuth, in
librdkafka's; the Spark job has users of its own. Every secret holds a canary.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from airflow_mm2_offsets.core.acls import Acl, Operation, Resource
from airflow_mm2_offsets.core.naming import ReplicationPolicy
from airflow_mm2_offsets.kafka.client_properties import format_properties
from demo.environment import BUILD, LAKE, TOPIC, Demo
from stack import jars
from stack.acls import grant, revoke_all
from stack.mirror import Broker
from stack.process import Program
from stack.s3 import S3Storage
from stack.secure import SecureStack
from stack.secure_cluster import java_quoted
from stack.token_server import SCOPE
from tests.e2e.canaries import Canaries

SIDES: tuple[Broker, ...] = ("source", "target")
WRONG = "kafka_wrong"
"""A connection of the job whose file of properties has a wrong password."""
_LOGIN_MODULE = "org.apache.kafka.common.security"
_COMMAND = str(Path(sys.executable).with_name("airflow-mm2-offsets"))
_SERVED = re.compile(r"(http://\S+); Ctrl-C ends it")
_MASKED = "jaas,ssl.keystore.key,ssl.key.pem,ssl_keystore_key,ssl_key_pem"
"""What Airflow's API is told to hide of a connection: the names hold none of its own words."""


class SecuredDemo:
    """The demo, its logins, and the rights that are granted."""

    def __init__(self, folder: Path, canaries: Canaries) -> None:
        """Make the logins and the demo; nothing runs yet."""
        self.folder = folder
        self.canaries = canaries
        self.stack = SecureStack(
            folder / "kafka",
            jars.fetch(BUILD, progress=print).kafka,
            jars.fetch_connect_login(BUILD, progress=print),
            secret=canaries.make,
            progress=print,
        )
        self.logins = {"source": self._source_login(), "target": self._target_login()}
        self.token = canaries.make("REST token")
        self.config = folder / "logins" / "mm2-offsets.properties"
        self.job_properties = folder / "logins" / "job"
        self.temporary = folder / "temporary"
        self._write_files()
        self.storage = S3Storage(folder, password=canaries.make("S3 secret"), progress=print)
        self.demo = Demo(
            folder,
            print,
            storage=self.storage,
            stack=self.stack,
            connections=self._connections(),
            env={
                "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
                "AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES": _MASKED,
                "AIRFLOW_VAR_KAFKA_PROPERTIES_FOLDER": str(self.job_properties),
                "TMPDIR": str(self.temporary),
                "SPARK_LOCAL_DIRS": str(self.temporary),
            },
            spark_conf={
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": str(folder / "spark-events"),
                "spark.eventLog.compress": "false",
            },
        )

    @property
    def secret_places(self) -> tuple[Path, ...]:
        """The files where secrets belong: of brokers, of Spark's administrator, of users."""
        spark_conf = self.folder / "spark" / "spark-defaults.conf"
        return self.folder / "kafka", self.folder / "logins", spark_conf

    def wrong_login(self) -> Mapping[str, Any]:
        """Return the source's connection with a wrong password."""
        cluster = self.stack.clusters["source"]
        wrong = self.canaries.make("wrong password of the source")
        jaas = _jaas("scram.Scram", cluster.user, f'wrong "{wrong}')
        return {"conn_type": "kafka", "extra": {**self.logins["source"], "sasl.jaas.config": jaas}}

    def right_login(self) -> Mapping[str, Any]:
        """Return the source's connection as it is meant."""
        return {"conn_type": "kafka", "extra": self.logins["source"]}

    def let_do_only(self, *tasks: str) -> None:
        """Grant Airflow's users the rights that ``acls`` prints for tasks, and the job its own."""
        for side in SIDES:
            revoke_all(getattr(self.stack, side))
        users_of = dict.fromkeys(tasks, self._users("user")) | {"stream": self._users("job_user")}
        for name, users in users_of.items():
            principals = ("--principal", users["source"], "--target-principal", users["target"])
            printed = self.run("acls", *principals, "--operator", name, "--topic", TOPIC)
            acls = json.loads(printed.stdout)["acls"]
            for side in SIDES:
                own = [_acl(each) for each in acls if each["cluster"] == side]
                grant(getattr(self.stack, side), [users[side]], own)

    def _users(self, field: str) -> dict[Broker, str]:
        return {side: f"User:{getattr(self.stack.clusters[side], field)}" for side in SIDES}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``airflow-mm2-offsets`` with the settings file; its output is JSON."""
        command = [_COMMAND, *arguments, "--config", str(self.config), "--json"]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, cwd=self.folder
        )

    @contextmanager
    def serving(self) -> Iterator[httpx.Client]:
        """Run ``airflow-mm2-offsets serve``, and yield a client that presents its token."""
        log = self.folder / "serve.log"
        command = [_COMMAND, "serve", "--config", str(self.config), "--port", "0", "--debug"]
        program = Program("serve", command, log=log)
        program.start()
        try:
            program.wait_ready(lambda: _SERVED.search(log.read_text()) is not None)
            url = _SERVED.findall(log.read_text())[0]
            headers = {"Authorization": f"Bearer {self.token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                yield client
        finally:
            program.stop()

    def _source_login(self) -> dict[str, str]:
        """By SCRAM, in Java's words, with an encrypted key that the broker does not ask for."""
        cluster = self.stack.clusters["source"]
        certificate = cluster.authority.issue(cluster.user)
        password = self.canaries.make("password of the source's key")
        key = certificate.encrypted_key(password)
        self.canaries.add_key("key of the source", key)
        return {
            "bootstrap.servers": cluster.sasl,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": _jaas("scram.Scram", cluster.user, cluster.password),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": cluster.authority.pem,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate.chain,
            "ssl.keystore.key": key,
            "ssl.key.password": password,
            "debug": "all",
        }

    def _target_login(self) -> dict[str, str]:
        """By OAuth, in librdkafka's words, with a key in clear."""
        cluster = self.stack.clusters["target"]
        certificate = cluster.authority.issue(cluster.user)
        self.canaries.add_key("key of the target", certificate.key)
        return {
            "bootstrap.servers": cluster.sasl,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(cluster.folder / "ca.pem"),
            "ssl.certificate.pem": certificate.chain,
            "ssl.key.pem": certificate.key,
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.stack.tokens.token_url,
            "sasl.oauthbearer.client.id": cluster.user,
            "sasl.oauthbearer.client.secret": cluster.secret,
            "sasl.oauthbearer.scope": SCOPE,
            "debug": "all",
        }

    def _job_login(self, side: Broker) -> dict[str, str]:
        cluster = self.stack.clusters[side]
        mechanism, module = {
            "source": ("SCRAM-SHA-512", "scram.Scram"),
            "target": ("PLAIN", "plain.Plain"),
        }[side]
        certificate = cluster.authority.issue(cluster.job_user)
        self.canaries.add_key(f"key of the job on the {side}", certificate.key)
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": _jaas(module, cluster.job_user, cluster.job_password),
            **cluster.truststore(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate.chain,
            "ssl.keystore.key": certificate.key,
        }

    def _write_files(self) -> None:
        for folder in (self.job_properties, self.temporary, self.folder / "spark-events"):
            folder.mkdir(parents=True)
        jobs = {f"kafka_{side}": self._job_login(side) for side in SIDES}
        wrong = f'"{self.canaries.make("wrong password of the job")}'
        jaas = _jaas("scram.Scram", self.stack.clusters["source"].job_user, wrong)
        jobs[WRONG] = {**jobs["kafka_source"], "sasl.jaas.config": jaas}
        for name, login in jobs.items():
            (self.job_properties / f"{name}.properties").write_text(format_properties(login))
        user, password = self.stack.connect_login or ("", "")
        settings = {
            f"{side}.{key}": value for side in SIDES for key, value in self.logins[side].items()
        }
        settings |= {
            "source.alias": "source",
            "target.alias": "target",
            "replication.policy": ReplicationPolicy.IDENTITY.value,
            "offset-syncs.topic.location": "target",
            "connect.url": self.stack.connect_url,
            "connect.username": user,
            "connect.password": password,
            "serve.token": self.token,
        }
        self.config.write_text(format_properties(settings))

    def _connections(self) -> dict[str, Mapping[str, Any]]:
        user, password = self.stack.connect_login or ("", "")
        servers = {"bootstrap.servers": self.stack.clusters["source"].sasl}
        return {
            LAKE: self.storage.connection(),
            "kafka_source": self.right_login(),
            "kafka_target": {"conn_type": "kafka", "extra": self.logins["target"]},
            WRONG: {"conn_type": "kafka", "extra": servers},
            "mm2_default": {
                "conn_type": "mm2",
                "login": user,
                "password": password,
                "extra": {
                    "source_alias": "source",
                    "target_alias": "target",
                    "replication_policy": "identity",
                    "offset_syncs_topic_location": "target",
                    "connect_url": self.stack.connect_url,
                },
            },
        }


def _jaas(module: str, user: str, password: str) -> str:
    login = f"username={java_quoted(user)} password={java_quoted(password)}"
    return f"{_LOGIN_MODULE}.{module}LoginModule required {login};"


def _acl(printed: Mapping[str, str]) -> Acl:
    return Acl(
        resource=Resource(printed["resource"]),
        name=printed["name"],
        operation=Operation(printed["operation"]),
        is_prefix=printed["pattern"] == "prefixed",
    )
