"""Grants and revokes rights on a running broker, as an administrator does by ``kafka-acls``."""

from collections.abc import Collection, Iterable
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from airflow_mm2_offsets.core.acls import Acl, Operation, Resource
from stack.waiting import wait_until

_OPERATIONS = {
    Operation.READ: AclOperation.READ,
    Operation.DESCRIBE: AclOperation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
_RESOURCES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.CLUSTER: ResourceType.BROKER,
}
_SECONDS = 30


def grant(servers: str, principals: Iterable[str], acls: Collection[Acl]) -> None:
    """Grant each right to each principal, and wait until the broker knows."""
    bindings = [_binding(each, acl) for each in principals for acl in sorted(set(acls))]
    if not bindings:
        return
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_acls(bindings).values():
        future.result(timeout=_SECONDS)
    wait_until(lambda: len(_existing(admin)) >= len(bindings), "the rights to be granted")


def revoke_all(servers: str) -> None:
    """Take away all rights that were granted."""
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_acls([_ANY]).values():
        future.result(timeout=_SECONDS)
    wait_until(lambda: not _existing(admin), "the rights to be revoked")


_UNSET: Any = None  # the client's types forget that a filter may leave texts open
_ANY = AclBindingFilter(
    ResourceType.ANY,
    _UNSET,
    ResourcePatternType.ANY,
    _UNSET,
    _UNSET,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def _existing(admin: AdminClient) -> list[AclBinding]:
    return list(admin.describe_acls(_ANY).result(timeout=_SECONDS))


def _binding(principal: str, acl: Acl) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if acl.is_prefix else ResourcePatternType.LITERAL
    return AclBinding(
        _RESOURCES[acl.resource],
        acl.name,
        pattern,
        principal,
        "*",
        _OPERATIONS[acl.operation],
        AclPermissionType.ALLOW,
    )
