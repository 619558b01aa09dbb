"""Address of a Spark Connect server, and its token. Messages show the address, never the token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from dbt_common.exceptions import DbtConfigError

_PORT = 15002
_PLAIN = ("use_ssl", "user_id", "user_agent", "grpc_")
"""Parameters (or their prefixes) whose values may be shown. Others are headers and may be secret."""
_SHAPE = "write it as sc://host:port, with parameters behind '/;', as in sc://host:15002/;use_ssl=true"


@dataclass(frozen=True)
class Remote:
    """Address for PySpark (`sc://host:port/;key=value;...`). `parameters` are as written, without the token."""

    host: str
    port: int
    parameters: tuple[str, ...] = field(default=(), repr=False)
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str | None, host: str | None, port: int | None, token: str | None) -> Remote:
        """Read a profile's `url`, or `host` and optional `port`. Raises `DbtConfigError`, which never holds a token."""
        if url is not None and (host is not None or port is not None):
            raise DbtConfigError("A lakehouse profile names a Spark Connect server by 'url' or by 'host' and 'port', not by both.")
        if url is None and host is None:
            raise DbtConfigError("method 'connect' needs the server's 'url' (sc://host:15002), or its 'host' and 'port'.")
        if port is not None and not 0 < port < 2**16:
            raise DbtConfigError(f"port is a number from 1 to {2**16 - 1}, not {port}")
        found = _parsed(url) if url is not None else cls(str(host), _PORT if port is None else port)
        if token is not None and found.token is not None:
            raise DbtConfigError("A lakehouse profile has the token in 'token' or in the 'url', not in both.")
        return cls(found.host, found.port, found.parameters, found.token or token)

    @property
    def shown(self) -> str:
        """Address for messages: no token, and only the names of headers."""
        return self._with(one if one.startswith(_PLAIN) else f"{one.partition('=')[0]}=***" for one in self.parameters)

    @property
    def bare(self) -> str:
        """The address without the token."""
        return self._with(self.parameters)

    @property
    def url(self) -> str:
        """The address with the token, for PySpark only."""
        return self._with(self.parameters if self.token is None else (*self.parameters, f"token={quote(self.token, safe='')}"))

    def _with(self, parameters: Iterable[str]) -> str:
        host, given = f"[{self.host}]" if ":" in self.host else self.host, ";".join(parameters)
        return f"sc://{host}:{self.port}" + (f"/;{given}" if given else "")


def _parsed(url: str) -> Remote:
    if not url.startswith("sc://"):
        raise DbtConfigError(f"The url of a Spark Connect server begins with 'sc://': {_SHAPE}")
    address, _, given = url.removeprefix("sc://").partition(";")
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        # Its message repeats the given text, which may hold a token.
        raise DbtConfigError(f"The url of the Spark Connect server is none: {_SHAPE}") from None
    if not host or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise DbtConfigError(f"The url of the Spark Connect server is none: {_SHAPE}")
    token, kept = None, []
    for parameter in filter(None, given.split(";")):
        key, equals, value = parameter.partition("=")
        if not key or not equals:
            raise DbtConfigError(f"A parameter in the url of the Spark Connect server has no value: {_SHAPE}")
        if "=" in value:
            raise DbtConfigError(f"The parameter {key} in the url of the Spark Connect server has a second '=': write it as %3D")
        if key == "session_id":
            raise DbtConfigError("The url of a Spark Connect server has no 'session_id' here: each thread has a session of its own.")
        if key == "token":
            token = unquote(value)
        else:
            kept.append(parameter)
    return Remote(host, port or _PORT, tuple(kept), token)
