r"""`java.util.Properties` text: the form of `hoodie.properties` and of partition metafiles.

The rules are those of `Properties.load(InputStream)` and `Properties.store(OutputStream)`: Latin-1 bytes, `\uXXXX` for everything outside
printable ASCII (UTF-16 units), `=`, `:` or whitespace between key and value, continuation by a trailing backslash.

Text that this engine writes begins with a comment that seals the bytes. Another program that stores the properties drops the seal, since
`Properties` keeps no comments; so a seal is never checked against another writer's text.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence

from lakehouse_engine.errors import PropertiesError
from lakehouse_engine.format.seal import SEAL_KEY, is_intact_behind, seal_behind

CHECKSUM_KEY = "hoodie.table.checksum"
_SEAL_COMMENT = f"#{SEAL_KEY}="
_BLANK = " \t\f"
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {value: f"\\{name}" for name, value in _NAMED.items()} | {char: f"\\{char}" for char in "\\=:#!"}
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_properties(data: bytes) -> dict[str, str]:
    """Keys and values in file order; the last value counts if a key is repeated. Raises `PropertiesError` on a bad `\\u` escape."""
    return dict(_split(line) for line in _logical_lines(data.decode("latin-1")))


def render_properties(properties: Mapping[str, str], *, comments: Sequence[str] = ()) -> bytes:
    """Text that `parse_properties` reads back: comments first, each on its own line, then keys in the given order."""
    lines = [f"#{_escape_unicode(part)}" for comment in comments for part in _LINE_END.split(comment)]
    lines += [f"{_escape(key, all_blanks=True)}={_escape(value, all_blanks=False)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def seal_properties(text: bytes) -> bytes:
    """The text with a first line that seals it."""
    return seal_behind(_SEAL_COMMENT.encode(), b"\n" + text)


def check_properties_seal(data: bytes) -> None:
    """Raise `PropertiesError` if the text has this engine's seal and was changed since."""
    if is_intact_behind(_SEAL_COMMENT.encode(), data) is False:
        raise PropertiesError(
            "the file is not as it was written: it was damaged, or edited by hand. Put it back from a backup; if the edit is meant, remove"
            f" the line {_SEAL_COMMENT}... from it"
        )


def table_checksum(properties: Mapping[str, str]) -> str:
    """CRC-32 of `<database>.<table>` as unsigned decimal text (Hudi `HoodieTableConfig.generateChecksum`); it covers nothing else."""
    name = f"{properties.get('hoodie.database.name', '')}.{properties.get('hoodie.table.name', '')}"
    return str(zlib.crc32(name.encode("utf-8")))


def verify_checksum(properties: Mapping[str, str]) -> None:
    """Raise `PropertiesError` if there is a checksum that does not match the names; old tables have none."""
    stored = properties.get(CHECKSUM_KEY)
    expected = table_checksum(properties)
    if stored is not None and stored != expected:
        raise PropertiesError(
            f"{CHECKSUM_KEY}={stored!r} does not fit the table's names (expected {expected}): the file is torn or was edited by hand",
            table=properties.get("hoodie.table.name"),
        )


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with continuations joined, without comments and blank lines."""
    pending: str | None = None
    for line in _LINE_END.split(text):
        line = line.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        joined = (pending or "") + line
        if _continues(line):
            pending = joined[:-1]
            continue
        pending = None
        yield joined
    if pending is not None:
        yield pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Key and value of a logical line, split at the first unescaped separator; blanks around one `=` or `:` are dropped."""
    end = 0
    while end < len(line) and line[end] not in f"=:{_BLANK}":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANK)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANK)
    return _unescape(line[:end]), _unescape(value)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char != "\\" or at + 1 == len(text):
            # A lone backslash at the very end means that the file was cut inside an escape; Java drops it.
            parts.append("" if char == "\\" else char)
            at += 1
        elif text[at + 1] == "u":
            parts.append(_utf16_unit(text, at))
            at += 6
        else:
            parts.append(_NAMED.get(text[at + 1], text[at + 1]))
            at += 2
    # Surrogate pairs are two escapes; a pass through UTF-16 joins them.
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _utf16_unit(text: str, at: int) -> str:
    digits = text[at + 2 : at + 6]
    if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
        raise PropertiesError(f"bad \\uXXXX escape {text[at : at + 6]!r}: the file is torn or was written by another tool")
    return chr(int(digits, 16))


def _escape(text: str, *, all_blanks: bool) -> str:
    escaped = "".join(_ESCAPED.get(char, char) for char in text)
    if all_blanks:
        escaped = escaped.replace(" ", "\\ ")
    elif escaped.startswith(" "):
        escaped = f"\\{escaped}"
    return _escape_unicode(escaped)


def _escape_unicode(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(chr(unit) if 0x20 <= unit <= 0x7E else f"\\u{unit:04X}" for unit in units)
