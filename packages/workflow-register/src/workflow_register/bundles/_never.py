"""What is never packed by accident: keys, repositories, environments, caches."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDERS = {
    ".aws", ".azure", ".cache", ".config", ".docker", ".eggs", ".git", ".gnupg", ".hg",
    ".hypothesis", ".idea", ".ipynb_checkpoints", ".kube", ".mypy_cache", ".nox", ".pytest_cache",
    ".ruff_cache", ".ssh", ".svn", ".terraform", ".tox", ".uv-cache", ".venv", ".vscode",
    "__pycache__", "__pypackages__", "dist-packages", "node_modules", "site-packages", "virtualenv",
}  # fmt: skip
_SECRETS = re.compile(
    r"""
    \.env | \.env[.\-_].* | .*\.env | \.envrc
    | id_(rsa|dsa|ecdsa|ed25519)(_sk)?
    | .*\.(pem|key|p8|p12|pfx|pkcs12|jks|keystore|kdbx|ppk|gpg|ovpn)
    | \.netrc | _netrc | \.pypirc | \.npmrc | \.pgpass | \.my\.cnf | \.htpasswd
    | \.git-credentials | \.dockercfg | .*\.tfstate(\..*)? | .*\.tfvars
    | (client_secrets?|service[-_]account|credentials|secrets?)([-_.].*)?\.(json|ya?ml|toml|ini|txt)
    | credentials | secrets?
    """,
    re.VERBOSE,
)
_REMAINS = re.compile(r".*\.(py[cod]|so|dylib|swp|swo|tmp|bak)|.*~|\.DS_Store|thumbs\.db")
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


def never_packed(path: Path, *, is_folder: bool) -> str | None:
    """Say why a file or folder of this name stays outside of every bundle; `None` if it may go in.

    Names are compared without regard to case.
    """
    name = path.name.casefold()
    if is_folder:
        if name in _FOLDERS or name.endswith((".egg-info", ".dist-info")):
            return "folders of this name hold a repository, an environment or a cache"
        if (path / "pyvenv.cfg").exists():
            return "it is a virtual environment"
        return None
    if _SECRETS.fullmatch(name):
        return "files of this name may hold keys"
    if _REMAINS.fullmatch(name):
        return "it is compiled or left over"
    return None


def holds_private_key(data: bytes) -> bool:
    """Whether a file has a private key in its text form, whatever its name."""
    return _PRIVATE_KEY.search(data) is not None
