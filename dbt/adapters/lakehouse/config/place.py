"""Where a profile's `warehouse` is: a relative one belongs to the project, whatever directory dbt is started in (docs/adr/0047)."""

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
    """Refuse what would be an oddly named directory, and is meant to be something else. Raises `DbtConfigError` with the profile's key."""
    if found := _VARIABLE.search(given):
        wanted = given.replace(found[0], f"{{{{ env_var('{found['name']}') }}}}")
        raise DbtConfigError(f"{key} '{given}' has a variable of the shell, which dbt does not replace: write \"{wanted}\"")
    if found := _ADDRESS.fullmatch(given):
        address = f"{found['scheme'].lower()}://{found['rest']}"
        raise DbtConfigError(f"{key} '{given}' is written {address} (a directory of that name: ./{given})")


@dataclass(frozen=True)
class Place:
    """The directory of a warehouse. `older` is where the project would have it, if the warehouse is still where dbt was started."""

    path: Path
    older: Path | None = None

    @classmethod
    def of(cls, given: str, project: Path) -> Place:
        """The directory that `given` means for a project: one that was made where dbt is started, by older versions, is kept."""
        wanted = (project / Path(given).expanduser()).resolve()
        started = Path(given).expanduser().resolve()
        if started != wanted and _is_warehouse(started):
            return cls(started, older=wanted)
        return cls(wanted)

    @property
    def warning(self) -> str | None:
        """Says that the warehouse is still where dbt was started; None for one in its place."""
        if self.older is None:
            return None
        other = f"another one, at {self.older}, is not used" if _is_warehouse(self.older) else f"it belongs at {self.older}"
        return (
            f"The warehouse {self.path} is used, which is relative to the directory that dbt was started in; {other}. "
            "Move it there, or give its absolute path as the profile's 'warehouse'"
        )


def project_folder() -> Path:
    """The directory of the project that dbt's command is for; the current directory where no command of dbt runs."""
    context = click.get_current_context(silent=True)
    flags = context.obj.get("flags") if context is not None and isinstance(context.obj, dict) else None
    return Path(getattr(flags, "PROJECT_DIR", None) or ".").resolve()


def _is_warehouse(folder: Path) -> bool:
    """Whether something was made in it as in a warehouse: a schema, or a table."""
    return any(True for pattern in ("*/.schema.json", "*/*/.hoodie") for _ in folder.glob(pattern))
