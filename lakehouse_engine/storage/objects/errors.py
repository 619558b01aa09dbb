"""Turns an object store's errors into the engine's, with a remedy and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore import exceptions

from lakehouse_engine.errors import StorageError, StoredFileExistsError, StoredFileNotFoundError, UnansweredError

_ADVICE = (
    (r"NoSuchBucket|bucket not found|ContainerNotFound|bucket does not exist", "there is no such bucket; make it, or check its name"),
    (
        r"PermanentRedirect|AuthorizationHeaderMalformed|wrong region|IllegalLocationConstraint|301 Moved|incorrectly configured region",
        "the bucket is in another region; set 'region' (or AWS_REGION) to its own, and 'endpoint' where it is another service",
    ),
    (r"RequestTimeTooSkewed", "the clock of this machine is too far from the store's; set it"),
    (
        r"InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken|401 Unauthorized|403 Forbidden|\(code: 40[13]\)"
        r"|AccessDenied|access denied",
        "access is denied; check the credentials (the environment's or storage_options), whether they have expired, and what they may do",
    ),
    (
        r"QuotaExceeded|InsufficientStorage|status code: 507|XMinioStorageFull|no space",
        "the store has no room left; make some and try again",
    ),
    (r"SlowDown|TooManyRequests|ServiceUnavailable|(status )?code: (429|503)", "the store asks for fewer requests; try again later"),
    (r"credential|metadata endpoint|169\.254", "no credentials were found; set the environment's, a profile's, or storage_options"),
    (r"operation timed out|TimedOut", "the store did not answer in time; check the connection, or raise 'timeout' of storage_options"),
    (r"builder error", "an endpoint of http:// needs 'allow_http: true' in storage_options (or the environment: AWS_ALLOW_HTTP=true)"),
    (r"dns error|error sending request|Connection refused|connect", "the store cannot be reached; check 'endpoint' and the connection"),
)
"""Message patterns, the most specific first."""
_NOT_DONE = r"status code: (3\d\d|4(?!08|09|29)\d\d|507)|redirect|169\.254|metadata endpoint|credential"
"""Messages of answers that mean the request will never be done."""
_NAMES = re.compile(
    r"""(?sx)
    https?://(?!169\.254\.169\.254/)[^\s"]+                                     # the address of the request, but of machines' credentials
    | (?<=for[ ]path[ ]).*?(?=:[ ]Error[ ]performing)                            # the path, in the words of each kind of error
    | (?<=at[ ]location[ ]).*?(?=[ ](?:not[ ]found|already[ ]exists):[ ])
    | (?<=failed[ ]for[ ]key[ ]).*?(?=:[ ])
    | (?<=path:[ ]")(?:[^"\\]|\\.)*                                              # and in what is printed of the error's source
    | <(Key|Resource|BucketName|Bucket|RequestId|HostId|UploadId)>.*?</\1>        # and in the answer
    """
)
"""Names in messages: addresses, paths, identifiers. Their letters and digits say nothing about the cause."""
_LONGEST = 300


@contextmanager
def as_object_errors(what: str, path: str, root: str) -> Iterator[None]:
    """Turn a store error in the block into a `StorageError` with `path`; `what` is the verb of the message.

    An absent object becomes `StoredFileNotFoundError`, an existing one `StoredFileExistsError`. The store's message is shortened and kept
    as text only, because its own errors may hold what was signed.
    """
    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError) as error:
        if says_no_bucket(error):
            raise storage_error(what, path, root, error) from None
        raise StoredFileNotFoundError(f"cannot {what} {path!r}: it is not there", path=path, root=root) from None
    except exceptions.AlreadyExistsError:
        raise StoredFileExistsError(f"cannot {what} {path!r}: it is there already", path=path, root=root) from None
    except (exceptions.BaseError, OSError) as error:
        raise storage_error(what, path, root, error) from None


def storage_error(what: str, path: str, root: str, error: BaseException, *, unanswered: bool = False) -> StorageError:
    """`unanswered`: the change may still be made."""
    said, happened = _told(str(error)), _happened(error)
    advice = next((text for pattern, text in _ADVICE if re.search(pattern, happened, re.IGNORECASE)), None)
    message = f"cannot {what} {path!r} in {root}: {advice or 'the store answered with an error'} ({said})"
    return (UnansweredError if unanswered else StorageError)(message, path=path, root=root)


def says_no_bucket(error: BaseException) -> bool:
    """True if the bucket is missing, not an object in it."""
    return re.search(_ADVICE[0][0], _happened(error)) is not None


def may_be_done(error: BaseException) -> bool:
    """True if a failed request may have been done or may still be: no answer, 5xx, 408, 409 or 429."""
    unknown = isinstance(error, (exceptions.GenericError, exceptions.JoinError)) or (
        isinstance(error, OSError) and not isinstance(error, (FileNotFoundError, PermissionError))
    )
    return unknown and not re.search(_NOT_DONE, _happened(error), re.IGNORECASE)


def is_unanswered(error: BaseException) -> bool:
    """True if no answer came at all."""
    return may_be_done(error) and not re.search(r"code: [45]\d\d", _happened(error))


def _happened(error: BaseException) -> str:
    """Message of `error` without names in it: port 50749 is not status 507, and a table called credentials does not mean that they are
    missing.
    """
    return _NAMES.sub("", str(error))


def _told(text: str) -> str:
    """First lines of the message without keys and signed content."""
    plain = re.sub(r"<(AWSAccessKeyId|StringToSign\w*|SignatureProvided|CanonicalRequest\w*|HostId)>.*?</\1>", "", text, flags=re.DOTALL)
    plain = re.sub(r"(?i)((x-amz-)?(signature|credential|security-token)|sig|se)=[^&\s]+", r"\1=...", plain)
    plain = " ".join(plain.partition("Debug source")[0].split())
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}..."
