"""Reads `workflow.yaml` and replaces it as a whole: one writer at a time, never half-written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from workflow_register._errors import ConfigError, ConfigFault, file_error
from workflow_register._files import locked, read_regular, write_atomically
from workflow_register._home import config_path
from workflow_register.config._config import REFERENCE, Config

MAX_BYTES = 1_000_000
LOCK_TIMEOUT_S = 10.0

Values = Mapping[str, object]


def load_config(home: Path) -> Config:
    """Read `<home>/workflow.yaml`; a file that isn't there is an empty configuration.

    No key is resolved: a configuration loads where its environment variables are not set.

    Raises:
        ConfigError: everything that is wrong with the file, each with its line and key.
    """
    path = config_path(home)
    text = _read(path)
    if text is None:
        return Config()
    from workflow_register.config._yaml import parse_config  # with its parser and pydantic

    return parse_config(path, text)


def update_config(home: Path, changes: Values) -> Config:
    """Change some values of `<home>/workflow.yaml` and return what it says then.

    The rest of the file stays as people wrote it. The result is checked before it is written, and
    other processes that update it wait for their turn. A new file can be read by its owner only.

    Args:
        changes: a merge patch (RFC 7396): nested mappings are merged, `None` removes a key, such
            as `{"providers": {"openai": {"base_url": …}}, "models": {"default": …}}`.

    Raises:
        ConfigError: the result would be wrong, a key of a provider is given in clear instead of
            as a `${NAME}` reference, or the file can't be written.
    """
    from workflow_register.config._edit import edit_config
    from workflow_register.config._yaml import parse_config

    path = config_path(home)
    _refuse_keys_in_clear(changes)
    try:
        with locked(home / ".workflow.yaml.lock", timeout_s=LOCK_TIMEOUT_S):
            before = _read(path) or ""
            after = edit_config(path, before, changes)
            config = parse_config(path, after)
            if after != before:
                target = path.resolve()  # a link into somebody's dotfiles stays a link
                mode = target.stat().st_mode & 0o777 if before else 0o600
                write_atomically(target, after.encode(), mode=mode)
    except TimeoutError as error:
        raise file_error(path, "another process is changing it; try again") from error
    except OSError as error:
        raise file_error(path, f"it can't be written: {error.strerror or error}") from error
    return config


def _read(path: Path) -> str | None:
    try:
        data = read_regular(path, MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_error(path, f"it can't be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise file_error(path, f"it has more than {MAX_BYTES:,} bytes; is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    # Without its cause, which holds the whole file, and so perhaps a key.
    raise file_error(path, "this line is not UTF-8; save the file as UTF-8", line)


def _refuse_keys_in_clear(changes: Values) -> None:
    providers = changes.get("providers")
    for name, provider in cast("Values", providers or {}).items():
        api_key = cast("Values", provider or {}).get("api_key")
        if api_key is not None and not REFERENCE.fullmatch(str(api_key)):
            raise ConfigError(
                [
                    ConfigFault(
                        None,
                        None,
                        f"providers.{name}.api_key",
                        "a key isn't written to a file; put it into an environment variable and "
                        "give its name as ${NAME}",
                    )
                ]
            )
