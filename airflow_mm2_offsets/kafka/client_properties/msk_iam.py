"""Amazon MSK with IAM: Java's ``IAMLoginModule`` as a callback that signs tokens.

The tokens come from Amazon's ``aws-msk-iam-sasl-signer-python`` (the extra ``msk``), which is
imported when the first one is needed. ``login`` makes the callback, ``java`` turns it back.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from airflow_mm2_offsets.kafka.client_properties.jaas import JAAS_CONFIG
from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError, as_text
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

MECHANISM = "AWS_MSK_IAM"
MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
CLIENT_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
LOGIN_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
"""For the mechanism OAUTHBEARER, which brokers of MSK take too."""
_SIGNER = "aws_msk_iam_sasl_signer"
_BROKER = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?=$|[:,\s])")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_PROFILE, _ROLE, _SESSION = "awsProfileName", "awsRoleArn", "awsRoleSessionName"
_OPTIONS = frozenset({_PROFILE, _ROLE, _SESSION, "awsDebugCreds", "awsStsRegion"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MskIamToken:
    """An ``oauth_cb`` of confluent-kafka; no secret: credentials are looked up for each token."""

    region: str
    profile: str | None = None
    role_arn: str | None = None
    session_name: str | None = None

    def __call__(self, _config: str = "") -> tuple[str, float]:
        """Return a token, and when it expires, in seconds since 1970."""
        provider: Any = import_module(f"{_SIGNER}.MSKAuthTokenProvider")
        if self.role_arn:
            session = [self.session_name] if self.session_name else []
            signed = provider.generate_auth_token_from_role_arn(
                self.region, self.role_arn, *session
            )
        elif self.profile:
            signed = provider.generate_auth_token_from_profile(self.region, self.profile)
        else:
            signed = provider.generate_auth_token(self.region)
        token, expires_ms = signed
        return token, expires_ms / 1000

    def jaas_options(self) -> dict[str, str]:
        """Return the options of Java's ``IAMLoginModule`` for the same credentials."""
        options = {_PROFILE: self.profile, _ROLE: self.role_arn, _SESSION: self.session_name}
        return {name: value for name, value in options.items() if value}


def translate_options(config: Config, options: Mapping[str, str]) -> None:
    """Put the callback into a configuration, in place, unless it has one.

    Raises:
        PropertyError: An option is unknown, the region can't be told, or the signer is missing.
    """
    if unknown := options.keys() - _OPTIONS:
        raise PropertyError(
            JAAS_CONFIG,
            f"has {', '.join(sorted(unknown))}, which the signer does not take; its options are "
            f"{', '.join(sorted(_OPTIONS))}",
        )
    config["sasl.mechanism"] = "OAUTHBEARER"
    if "oauth_cb" in config:
        return
    if find_spec(_SIGNER) is None:
        raise PropertyError(
            "sasl.mechanism",
            "is AWS IAM, which needs aws-msk-iam-sasl-signer-python; "
            "pip install 'airflow-mm2-offsets[msk]'",
        )
    config["oauth_cb"] = MskIamToken(
        region=_region(as_text(config.get(BOOTSTRAP_SERVERS, ""))),
        profile=options.get(_PROFILE),
        role_arn=options.get(_ROLE),
        session_name=options.get(_SESSION),
    )


def is_msk(servers: str) -> bool:
    """Tell whether brokers are Amazon MSK's, by their names."""
    return _BROKER.search(servers.lower()) is not None


def _region(servers: str) -> str:
    if match := _BROKER.search(servers.lower()):
        return match[1]
    for variable in _REGION_VARIABLES:
        if region := os.environ.get(variable):
            return region
    raise PropertyError(
        BOOTSTRAP_SERVERS,
        f"names no region of AWS, so no token can be signed; set the variable "
        f"{_REGION_VARIABLES[0]} of the process",
    )
