"""Checks the `packages` of Python models and functions, which must be installed in dbt's own environment."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from dbt_common.exceptions import DbtRuntimeError
from packaging.requirements import InvalidRequirement, Requirement


def check_packages(name: str, packages: Iterable[str]) -> None:
    """Raise `DbtRuntimeError` with the model and all packages that are missing or of another version.

    A package is a pip requirement (`pandas`, `scikit-learn>=1.4`), by distribution or module name.
    """
    wrong = [found for package in packages if (found := missing(str(package).strip())) is not None]
    if wrong:
        raise DbtRuntimeError(
            f"{name}: the model asks for packages, of which {'; '.join(wrong)}. It runs in the Python of dbt: install them there"
            " (pip install), or take them out of the config 'packages'"
        )


def missing(text: str) -> str | None:
    """What is wrong with a requirement; None if it is met."""
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return f"'{text}' is no requirement (a name, or a name and versions: 'pandas>=2')"
    if wanted.marker is not None and not wanted.marker.evaluate():
        return None
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        if not _is_module(wanted.name.replace("-", "_")):
            return f"'{wanted.name}' is not installed"
        return f"the version of '{wanted.name}', which is no installed package, is not known" if wanted.specifier else None
    if wanted.specifier.contains(found, prereleases=True):
        return None
    return f"'{wanted.name}' is there as {found}, which is not {wanted.specifier}"


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the part before the first dot is no package
        return False
