"""Location of a profile's `warehouse`: relative paths start at the project, wherever dbt is started (docs/adr/0047)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.stores import SCHEMES

_VARIABLE = re.compile(r"\$\{?(?P<name>[A-Za-z_]\w*)\}?")
_ADDRESS = re.compile(rf"(?P<scheme>{'|'.join(SCHEMES)}):/?(?P<rest>[^/].*)", re.IGNORECASE)


def check_directory(key: str, given: str) -> None:
    """Refuse values that would make an oddly named directory and mean something else. Raises `DbtConfigError` with the profile's key."""
    if found := _VARIABLE.search(given):
        wanted = given.replace(found[0], f"{{{{ env_var('{found['name']}') }}}}")
        raise DbtConfigError(f"{key} '{given}' has a variable of the shell, which dbt does not replace: write \"{wanted}\"")
    if found := _ADDRESS.fullmatch(given):
        address = f"{found['scheme'].lower()}://{found['rest']}"
        raise DbtConfigError(f"{key} '{given}' is written {address} (a directory of that name: ./{given})")


@dataclass(frozen=True)
class Place:
    """Directory of a warehouse. `older`: its place below the project, if the warehouse still is where dbt was started."""

    path: Path
    older: Path | None = None

    @classmethod
    def of(cls, given: str, project: Path) -> Place:
        """Directory that `given` means for a project. A directory that older versions made where dbt is started is kept."""
        wanted = (project / Path(given).expanduser()).resolve()
        started = Path(given).expanduser().resolve()
        if started != wanted and _is_warehouse(started):
            return cls(started, older=wanted)
        return cls(wanted)

    @property
    def warning(self) -> str | None:
        """Warning that the warehouse still is where dbt was started; None if it is in its place."""
        if self.older is None:
            return None
        other = f"another one, at {self.older}, is not used" if _is_warehouse(self.older) else f"it belongs at {self.older}"
        return (
            f"The warehouse {self.path} is used, which is relative to the directory that dbt was started in; {other}. "
            "Move it there, or give its absolute path as the profile's 'warehouse'"
        )


def project_folder() -> Path:
    """Project directory of the running dbt command; the current directory outside of one."""
    context = click.get_current_context(silent=True)
    flags = context.obj.get("flags") if context is not None and isinstance(context.obj, dict) else None
    return Path(getattr(flags, "PROJECT_DIR", None) or ".").resolve()


def _is_warehouse(folder: Path) -> bool:
    """True if the directory holds a schema or table, as a warehouse does."""
    return any(True for pattern in ("*/.schema.json", "*/*/.hoodie") for _ in folder.glob(pattern))
