"""Plain files: formats that can be read and written, and their Spark options."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.errors import MissingOptionError, OptionError, UnknownOptionError

_EVERY = (
    *("basePath", "compression", "ignoreCorruptFiles", "ignoreMissingFiles", "maxRecordsPerFile", "modifiedAfter", "modifiedBefore"),
    *("pathGlobFilter", "recursiveFileLookup", "timeZone"),
)
_TEXTS = (
    *("charset", "codec", "columnNameOfCorruptRecord", "dateFormat", "enableDateTimeParsingFallback", "encoding", "lineSep", "locale"),
    *("mode", "multiLine", "samplingRatio", "singleVariantColumn", "timestampFormat", "timestampNTZFormat"),
)
OPTIONS: dict[str, tuple[str, ...]] = {
    "csv": (
        *("sep", "delimiter", "quote", "escape", "comment", "header", "inferSchema", "preferDate", "enforceSchema", "nullValue"),
        *("nanValue", "positiveInf", "negativeInf", "maxColumns", "maxCharsPerColumn", "charToEscapeQuoteEscaping", "emptyValue"),
        *("quoteAll", "escapeQuotes", "extension", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "unescapedQuoteHandling"),
        *_TEXTS,
        *_EVERY,
    ),
    "json": (
        *("primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes"),
        *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "allowNonNumericNumbers", "allowNumericLeadingZeros"),
        "dropFieldIfAllNull",
        *("ignoreNullFields", "pretty", "writeNonAsciiCharacterAsCodePoint"),
        *_TEXTS,
        *_EVERY,
    ),
    "parquet": ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode", *_EVERY),
    "orc": ("mergeSchema", *_EVERY),
    "text": ("wholetext", "lineSep", "encoding", *_EVERY),
}
"""Options of Spark's readers and writers by format. Spark silently ignores others."""
FORMATS = tuple(OPTIONS)


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What to read: `path` may have globs; `schema` is DDL (None: inferred); `options` are Spark's, as pairs of texts."""

    path: str
    format: str
    schema: str | None = None
    options: tuple[tuple[str, str], ...] = ()


def files_read(path: Any, format: Any, schema: Any = None, options: Mapping[str, Any] | None = None) -> FilesRead:
    """Check and build it. Raises `OptionError` by name for what is missing, unknown or of a wrong kind."""
    if not isinstance(path, str) or not path.strip():
        raise MissingOptionError("'path' is missing: name a file, a folder or a pattern such as data/*.csv")
    if schema is not None and (not isinstance(schema, str) or not schema.strip()):
        raise OptionError(f"'schema' is a text of columns and types such as 'id bigint, name string', not {schema!r}")
    known = checked_format(format)
    return FilesRead(path, known, schema, checked_options(known, options))


def checked_format(format: Any) -> str:
    """Spark's name of a format. Raises `OptionError` for an unknown one."""
    if format is None:
        raise MissingOptionError(f"'format' is missing: {_one_of(FORMATS)}")
    name = str(format).strip().lower()
    if name not in OPTIONS:
        raise OptionError(f"format {str(format)!r} is not {_one_of(FORMATS)}{nearest(name, FORMATS)}")
    return name


def checked_options(format: str, options: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """A format's options as pairs of texts. Raises `OptionError` for an unknown one, or a value that is not plain."""
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(f"'options' is a mapping of Spark's option names to values, not {options!r}")
    known = {name.lower(): name for name in OPTIONS[format]}
    found: dict[str, str] = {}
    for key, value in (options or {}).items():
        name = known.get(str(key).lower()) or _of_library(format, str(key))
        if name is None:
            raise UnknownOptionError(f"{format} has no option {str(key)!r}{nearest(str(key).lower(), known)}")
        if not isinstance(value, (str, bool, int, float)):
            raise OptionError(f"the option {key!r} of {format} has no plain value: {value!r}")
        if name in found:
            raise OptionError(f"the option {name!r} of {format} is given twice")
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return tuple(sorted(found.items()))


def nearest(name: str, known: Sequence[str] | Mapping[str, str]) -> str:
    """`"; did you mean 'x'?"`, or an empty text."""
    near = difflib.get_close_matches(name, list(known), n=1)
    if not near:
        return ""
    return f"; did you mean {(known[near[0]] if isinstance(known, Mapping) else near[0])!r}?"


def _of_library(format: str, key: str) -> str | None:
    """Settings of the Parquet and ORC libraries, of which the engine has no list."""
    return key if key.startswith(f"{format}.") and format in ("parquet", "orc") else None


def _one_of(names: Sequence[str]) -> str:
    return f"one of {', '.join(names)}"
