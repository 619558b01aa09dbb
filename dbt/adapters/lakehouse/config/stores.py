"""A warehouse in an object store: the profile's options, which of them may be shown, and Spark's own settings for reading there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.names import did_you_mean

SCHEMES = ("s3", "s3a", "gs", "az")
READ_FILES = "lakehouse.read.files"
REDACTION = "spark.redaction.regex"
SECRET = r"(?i)secret|password|token|access[._]?key|account[._]?key|credential|(^|[._])sas|private"
"""Names of settings whose values are never shown: Spark's redaction pattern, plus names that other stores use."""
_SHOWN = frozenset({
    *("endpoint", "base_url", "region", "allow_http", "virtual_hosted_style_request", "account_name", "skip_signature"),
    *("allow_invalid_certificates", "timeout", "connect_timeout", "proxy_url"),
})  # fmt: skip
_EVERY = frozenset({"allow_http", "allow_invalid_certificates", "skip_signature", "timeout", "connect_timeout", "proxy_url"})
_TOLD = ("virtual_hosted_style_request", "skip_signature")
"""Flags that Spark gets as well. The store takes other texts for true (1, on, yes), and the two would read different places."""
_S3 = _EVERY | {
    *("endpoint", "region", "access_key_id", "secret_access_key", "session_token", "virtual_hosted_style_request"),
    *("server_side_encryption", "sse_kms_key_id", "sse_bucket_key_enabled", "request_payer"),
    *("role_arn", "role_session_name", "metadata_endpoint", "aws_endpoint_url_s3"),
}
NAMES = {
    "s3": _S3,
    "s3a": _S3,
    "gs": _EVERY | {"service_account", "service_account_key", "application_credentials", "base_url", "bearer_token"},
    "az": _EVERY | {
        *("endpoint", "account_name", "account_key", "sas_token", "sas_key", "client_id", "client_secret", "tenant_id", "authority_host"),
        *("token", "msi_endpoint", "use_emulator", "use_fabric_endpoint", "container_name"),
    },
}  # fmt: skip
"""Common `storage_options` of each scheme, to detect misspelled names that the store does not know."""
_S3A = "org.apache.hadoop.fs.s3a"
_HADOOP = re.compile(r"hadoop-client-api-(\d[\w.]*?)\.jar")
_JAR_KEYS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


@dataclass(frozen=True)
class ObjectStore:
    """Place of a warehouse: `scheme` and `bucket` of its address, and the profile's `storage_options`."""

    scheme: str
    bucket: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, warehouse: str, options: Mapping[str, str]) -> ObjectStore | None:
        """Place of a warehouse; None for a directory. Raises `DbtConfigError` for an invalid address, without repeating what may be secret
        in it.
        """
        if "://" not in warehouse or warehouse.startswith("file:"):
            if options:
                raise DbtConfigError("storage_options belong to a warehouse in an object store (s3://, gs://, az://), not to a directory.")
            return None
        place = urlsplit(warehouse)
        if place.scheme not in SCHEMES:
            raise DbtConfigError(f"warehouse: '{place.scheme}://' is none of {', '.join(f'{one}://' for one in SCHEMES)}, and no directory")
        if "@" in place.netloc or place.query or place.fragment:
            raise DbtConfigError(f"warehouse is written {place.scheme}://bucket/path; keys stand in storage_options or the environment")
        if not place.netloc:
            raise DbtConfigError(f"warehouse: {warehouse} names no bucket: write {place.scheme}://bucket/path")
        for name in options:
            # The store knows more names and refuses unknown ones on opening; these are the ones that Spark gets.
            hint = "" if name in NAMES[place.scheme] else did_you_mean(name, NAMES[place.scheme])
            if hint:
                raise DbtConfigError(f"storage_options: '{name}' is no option of {place.scheme}://{hint}")
            if name in _TOLD and options[name] not in ("true", "false"):
                raise DbtConfigError(f"storage_options: {name} is true or false")
        return cls(place.scheme, place.netloc, dict(options))

    @property
    def is_s3(self) -> bool:
        return self.scheme in ("s3", "s3a")

    def spark_settings(self) -> dict[str, str]:
        """Hadoop S3A settings for this bucket only. Without keys S3A uses its own credential chain."""
        given, prefix = self.options, f"spark.hadoop.fs.s3a.bucket.{self.bucket}."
        found = dict(_connection(given))
        if given.get("access_key_id"):
            provider = "TemporaryAWSCredentialsProvider" if given.get("session_token") else "SimpleAWSCredentialsProvider"
            found |= {"access.key": given["access_key_id"], "secret.key": given.get("secret_access_key", "")}
            found |= {"session.token": given["session_token"]} if given.get("session_token") else {}
            found["aws.credentials.provider"] = f"{_S3A}.{provider}"
        elif given.get("skip_signature") == "true":
            found["aws.credentials.provider"] = f"{_S3A}.AnonymousAWSCredentialsProvider"
        # The engine names its files s3://; this makes S3A answer to that scheme.
        return {"spark.hadoop.fs.s3.impl": f"{_S3A}.S3AFileSystem", **{f"{prefix}{key}": value for key, value in found.items()}}


def _connection(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if endpoint := given.get("endpoint"):
        yield "endpoint", endpoint
        yield "connection.ssl.enabled", str(not endpoint.startswith("http://")).lower()
        yield "path.style.access", str(given.get("virtual_hosted_style_request") != "true").lower()
    if region := given.get("region"):
        yield "endpoint.region", region


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """`storage_options` for printing: all names, and the values that are known to be no secret."""
    return {key: _without_user(value) if key in _SHOWN else "***" for key, value in options.items()}


def _without_user(value: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "***@", value)


def text_options(options: Any) -> dict[str, str]:
    """Raise `DbtConfigError` unless the value maps names to plain values; values are not repeated."""
    if not isinstance(options, Mapping):
        raise DbtConfigError("storage_options is a mapping of names to values, as {region: eu-central-1}")
    for key, value in options.items():
        if not isinstance(value, (str, bool, int, float)):
            raise DbtConfigError(f"storage_options: '{key}' has no plain value")
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def coordinates(spark_home: Path | None) -> str:
    """Maven coordinates of S3A for Spark; they bring the AWS SDK."""
    return f"org.apache.hadoop:hadoop-aws:{hadoop_version(spark_home) or '<the version of Hadoop in your Spark>'}"


def hadoop_version(spark_home: Path | None) -> str | None:
    """Version of Spark's own Hadoop. S3A of another version does not work with it."""
    for path in (spark_home / "jars").iterdir() if spark_home else ():
        if found := _HADOOP.fullmatch(path.name):
            return found[1]
    return None


def names_s3a(spark_config: Mapping[str, str]) -> bool:
    """True if the user's own settings bring S3A."""
    return any("hadoop-aws" in spark_config.get(key, "") for key in _JAR_KEYS)


def jars_in(folder: str, spark_home: Path | None) -> list[str]:
    """Jars of the profile's `jars`. Raises `DbtConfigError` if S3A is missing or of another version than Spark's, naming what is needed."""
    wanted = f"put the jars of {coordinates(spark_home)} and what it depends on (the AWS SDK's bundle) there"
    place = Path(folder)
    if not place.is_dir():
        raise DbtConfigError(f"jars: {folder} is no folder: {wanted}, or leave 'jars' out: then the engine reads the files for Spark")
    found = sorted(path for path in place.glob("*.jar"))
    named = [path.name for path in found]
    version = hadoop_version(spark_home)
    if not any(re.search(rf"hadoop-aws-{re.escape(version)}\.jar$" if version else r"hadoop-aws-[\d.]+\.jar$", name) for name in named):
        raise DbtConfigError(f"jars: {folder} has no hadoop-aws of Spark's own version: {wanted}")
    if not any(re.search(r"bundle-\d[\w.]*\.jar$", name) for name in named):
        raise DbtConfigError(f"jars: {folder} has no bundle of the AWS SDK (software.amazon.awssdk:bundle): {wanted}")
    return [str(path) for path in found]
