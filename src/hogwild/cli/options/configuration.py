"""Configuration files: the options of a command as TOML, read for its command line, and written to repeat a run."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import typer

from hogwild.cli.path_command import DATA_OPTIONS
from hogwild.data.remote import is_remote
from hogwild.data.streams import STDIN
from hogwild.errors import ParameterError
from hogwild.files import special_kind, write_file

CLUSTER = "cluster"  # name of the only table: where the cluster is, and how a run uses it
CLUSTER_OPTIONS = ("address", "heartbeat_timeout", "max_restarts", "cpus_per_worker", "admission_timeout")
# Options that only the command line has: the files themselves, and the form of the output.
COMMAND_LINE_ONLY = ("config", "save_config", "as_json", "json", "debug")
# Options that a saved configuration leaves out, because a repetition must not write to the same place.
DESTINATIONS = (
    "out", "checkpoint", "checkpoint_seconds", "resume", "folder", "log", "tensorboard", "record", "watch",
)  # fmt: skip
# The words for a value, and an example of one, by the type of an option.
VALUES: Mapping[type, tuple[str, str]] = {
    bool: ("true or false", "true"),
    int: ("a whole number", "4"),
    float: ("a number", "0.5"),
    str: ("text in quotes, or a number", '"..."'),
    Path: ("a path in quotes", '"..."'),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """Option of a command: its name, the type of its value, and the range of numbers."""

    name: str
    kind: type  # bool, int, float, str or Path
    many: bool = False  # whether the option may be repeated
    least: float = -math.inf
    most: float = math.inf
    default: object = None

    @property
    def key(self) -> str:
        """The name in a file, which is the long name on the command line."""
        return self.name.replace("_", "-")

    def checked(self, value: object, path: Path) -> object:
        """Return a value from a file as the command line would have it.

        Raises
        ------
        ParameterError
            If the value has another type, or is out of the option's range.
        """
        if not self.many:
            return self._one(value, path)
        return [self._one(each, path) for each in (value if isinstance(value, list) else [value])]

    def _one(self, value: object, path: Path) -> object:
        words, example = VALUES[self.kind]
        if not isinstance(value, _ACCEPTED[self.kind]) or (isinstance(value, bool) and self.kind is not bool):
            raise ParameterError(
                f"{path}: {self.key!r} must be {words}, such as {self.key} = {example}. Got {value!r} instead."
            )
        if self.kind is Path and value == "":
            raise ParameterError(f"{path}: {self.key!r} is an empty path. Name a file or a folder, or leave it out.")
        if isinstance(value, int | float) and not self.least <= value <= self.most:
            bound = f"at least {self.least:g}" if value < self.least else f"at most {self.most:g}"
            raise ParameterError(f"{path}: {self.key!r} must be {bound}. Got {value!r} instead.")
        if self.kind is float:
            assert isinstance(value, int | float)
            return float(value)
        return str(value) if self.kind is str else value


# Types of TOML values that an option accepts, by its own type. A bool is an int in Python, and is refused apart.
_ACCEPTED: Mapping[type, tuple[type, ...]] = {
    bool: (bool,), int: (int,), float: (int, float), str: (str, int, float), Path: (str,),
}  # fmt: skip


def settings_of(command: Callable[..., None]) -> dict[str, Setting]:
    """Return the options of a command that a file may have, by the names of its parameters.

    >>> def draw(width: Annotated[int, typer.Option(min=1)] = 2, names: list[str] | None = None) -> None: ...
    >>> settings_of(draw)["width"]
    Setting(name='width', kind=<class 'int'>, many=False, least=1, most=inf, default=2)
    """
    found = {}
    for name, each in signature(command, eval_str=True).parameters.items():
        if each.annotation is not typer.Context and name not in COMMAND_LINE_ONLY:
            setting = _setting(name, each)
            found[name] = replace(setting, kind=Path) if name in DATA_OPTIONS and setting.kind is str else setting
    return found


def _setting(name: str, parameter: Parameter) -> Setting:
    kind, least, most = parameter.annotation, -math.inf, math.inf
    if get_origin(kind) is Annotated:
        kind, *about = get_args(kind)
        for option in about:
            least = least if option.min is None else option.min
            most = most if option.max is None else option.max
    kinds = [each for each in get_args(kind) if each is not NoneType] if get_origin(kind) is not list else []
    kind = kinds[0] if kinds else kind
    many = get_origin(kind) is list
    return Setting(name, get_args(kind)[0] if many else kind, many, least, most, parameter.default)


def read(path: Path, command: Callable[..., None]) -> dict[str, object]:
    """Return the options in a file, by the names of the command's parameters.

    Parameters
    ----------
    path : Path
        A TOML file. Its keys are long names of options, with hyphens or underscores.
    command : callable
        Function of the command.

    Returns
    -------
    dict of str to object
        Values for ``typer.Context.default_map``, over which the command line prevails.

    Raises
    ------
    ParameterError
        If there is no such file, if it is not TOML, or if a key or a value is wrong.
    """
    settings, found = settings_of(command), dict[str, object]()
    for key, value, table in _entries(path, _parsed(path)):
        name = key.replace("-", "_")
        if name in COMMAND_LINE_ONLY:
            raise ParameterError(f"{path}: {key!r} is for the command line alone: leave it out of the file.")
        if name not in settings:
            raise _unknown(path, key, [setting.key for setting in settings.values()])
        if table and name not in CLUSTER_OPTIONS:
            raise ParameterError(
                f"{path}: {key!r} does not belong to the table [{CLUSTER}]: write it above all tables."
            )
        if name in found:
            raise ParameterError(f"{path}: {settings[name].key!r} is there twice. Leave out one of them.")
        found[name] = settings[name].checked(value, path)
    return found


def _parsed(path: Path) -> dict[str, Any]:
    import tomllib

    if path.is_dir():
        raise ParameterError(f"--config {path}: this is a folder. Name a file in it, such as {path / 'config.toml'}.")
    if (kind := special_kind(path)) is not None:
        raise ParameterError(f"--config {path}: this is {kind}, not a file.")
    if not path.exists():
        raise ParameterError(
            f"--config {path}: there is no such file. 'hogwild train ... --save-config {path}' writes one."
        )
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not TOML, which is text in UTF-8.") from None
    except RecursionError:
        raise ParameterError(f"{path}: lists within lists within lists. No option has such a value.") from None
    except tomllib.TOMLDecodeError as error:
        reason = str(error).rstrip(".")
        raise ParameterError(f'{path} is not TOML: {reason}. Text stands in quotes: strategy = "hogwild".') from None


def _entries(path: Path, parsed: dict[str, Any]) -> list[tuple[str, object, bool]]:
    """Return the keys and values of a file, and whether they stand in the table of the cluster."""
    cluster = parsed.pop(CLUSTER, {})
    if not isinstance(cluster, dict):
        raise ParameterError(f'{path}: {CLUSTER!r} is a table: write [{CLUSTER}] and, below it, address = "HOST".')
    for key, value in parsed.items():
        if isinstance(value, dict):
            raise ParameterError(
                f"{path}: there is no table [{key}]. Options stand above all tables; only those of a cluster may stand "
                f"in [{CLUSTER}]."
            )
    cluster = _with_port(path, dict(cluster))
    return [(key, value, False) for key, value in parsed.items()] + [
        (key, value, True) for key, value in cluster.items()
    ]


def _with_port(path: Path, cluster: dict[str, Any]) -> dict[str, Any]:
    """Return the table with the port of the head as a part of its address."""
    if "port" not in cluster:
        return cluster
    port, address = cluster.pop("port"), cluster.get("address")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 2**16:
        raise ParameterError(
            f"{path}: 'port' must be a number from 1 to 65535, such as port = 6379. Got {port!r} instead."
        )
    whole = isinstance(address, str) and address != "auto" and (":" not in address or address.endswith("]"))
    if not whole:
        raise ParameterError(f"{path}: 'port' needs an address without one beside it, such as address = \"10.0.0.1\".")
    return {**cluster, "address": f"{address}:{port}"}


def _unknown(path: Path, key: str, keys: list[str]) -> ParameterError:
    close = difflib.get_close_matches(key.replace("_", "-").lower(), keys, n=1)
    if close:
        return ParameterError(f"{path}: there is no option {key!r}. Did you mean {close[0]!r}?")
    return ParameterError(f"{path}: there is no option {key!r}. 'hogwild train --help' lists all of them.")


def repeating(values: Mapping[str, object], command: Callable[..., None]) -> str:
    """Return a file with which a command repeats a run: all options that are not the default.

    Places to which the run writes are left out. Paths that it reads are absolute, so that the file can be used anywhere
    on this machine.

    Raises
    ------
    ParameterError
        If a path is not Unicode, which TOML cannot express.
    """
    from importlib.metadata import version

    lines = [f"# hogwild {version('hogwild')}: 'hogwild train --config FILE' repeats this run."]
    for name, setting in settings_of(command).items():
        value = values[name]
        if name not in DESTINATIONS and value not in (setting.default, None, (), []):
            lines.append(f"{setting.key} = {_toml(value, setting)}")
    return "\n".join([*lines, ""])


def _toml(value: object, setting: Setting) -> str:
    """Return a value as TOML.

    >>> _toml('a "b"\\x7f', Setting("label", str)), _toml(1e-05, Setting("l2", float))
    ('"a \\\\"b\\\\"\\\\u007f"', '1e-05')
    >>> _toml(("2=0.01", "3=0.04"), Setting("delay", str, many=True)), _toml(True, Setting("balanced", bool))
    ('["2=0.01", "3=0.04"]', 'true')
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each, setting) for each in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    local = setting.kind is Path and not (setting.name in DATA_OPTIONS and (is_remote(value) or value == STDIN))
    text = str(Path(str(value)).absolute()) if local else str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{text!r} is not Unicode, and cannot stand in a configuration: rename it.") from None
    # Basic strings of TOML have the escapes of JSON. TOML demands one more, of U+007F.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def save(path: Path, text: str) -> None:
    """Write a configuration to a file, all of it or nothing."""
    write_file(path, text.encode())
