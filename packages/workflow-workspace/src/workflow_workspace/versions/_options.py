"""What a version keeps of a folder, and what it leaves out because it may be a secret."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence

import msgspec

from workflow_workspace._gitignore import Effort, Rules
from workflow_workspace.versions._records import Reason

MIN_SECRET_BYTES = 8
"""Shorter values are not looked for: half of all files would hold them."""

_NAMES = frozenset({
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".htpasswd",
    ".git-credentials", ".dockercfg", ".dockerconfigjson", ".boto", ".s3cfg", ".terraformrc",
    ".vault-token", ".databrickscfg", ".rclone.conf", "rclone.conf", "kubeconfig", ".kubeconfig",
    "credentials.tfrc.json", "application_default_credentials.json",
    "accesstokens.json", ".pip.conf",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss",
})  # fmt: skip
_SUFFIXES = (
    ".env", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdb", ".kdbx", ".key",
    ".publishsettings", ".tfstate", ".tfstate.backup", ".pgpass", ".netrc", ".npmrc", ".pypirc",
)  # fmt: skip
_PREFIXES = ("client_secret", "id_rsa.", "id_ed25519.", "msal_token_cache.")
_FOLDERS = frozenset({
    ".aws", ".azure", ".gcloud", ".ssh", ".gnupg", ".oci", ".terraform.d",
    ".cloudflared", ".password-store",
})  # fmt: skip
_IN_FOLDERS = frozenset({
    (".docker", "config.json"), (".kube", "config"), (".kube", "cache"),
    (".config", "gcloud"), (".config", "gh"), (".config", "hub"), (".config", "rclone"),
    (".cargo", "credentials"), (".cargo", "credentials.toml"), (".gem", "credentials"),
    (".m2", "settings.xml"), (".composer", "auth.json"), (".streamlit", "secrets.toml"),
})  # fmt: skip

# A line that begins a key and the key's first line, also in JSON: what only speaks of keys is kept.
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\r|\\n)+"
    rb"(?:[A-Za-z0-9+/=]{16}|Proc-Type:|Version:|Comment:)"
    rb"|PuTTY-User-Key-File-\d"
)

_KEY_WORDS = (b"PRIVATE KEY", b"PuTTY-User-Key-File-")
_CLOUD_WORDS = (b"secret_access_key", b"SECRET_ACCESS_KEY", b"SecretAccessKey", b"AccountKey=")
_CLOUD_KEY = re.compile(
    rb"(?i:aws_)?(?:secret_access_key|SECRET_ACCESS_KEY|SecretAccessKey)[\"']?\s*[=:]\s*[\"']?"
    rb"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"
    rb"|AccountKey=[A-Za-z0-9/+]{86}=="
)


class Versioned(msgspec.Struct, frozen=True, kw_only=True):
    """What the versions of a folder keep."""

    include: tuple[str, ...] = ()
    """Patterns as in `.gitignore` for what is kept, although its name is one that secrets have, it
    looks like a private key, or `.gitignore` names it. A file that holds the value of a configured
    key is never kept."""
    exclude: tuple[str, ...] = ()
    """Patterns as in `.gitignore` for what isn't kept."""
    max_files: int = 50_000
    """No versions are kept of a folder that has more."""
    max_file_bytes: int = 64 * 1024 * 1024
    """Larger files are left out."""
    max_bytes: int = 1024 * 1024 * 1024
    """No versions are kept of a folder whose files have more together."""


class Choice:
    """The options, ready to be asked.

    Args:
        options: the user's.
        secrets: values that no file which is kept may hold.
    """

    def __init__(self, options: Versioned, secrets: Sequence[bytes]) -> None:
        self.options = options
        self._effort = Effort(steps=1 << 60)
        self._include = Rules.of(_lines(options.include), self._effort)
        self._exclude = Rules.of(_lines(options.exclude), self._effort)
        self._secrets = sorted({each for each in secrets if len(each) >= MIN_SECRET_BYTES})
        self._wide = [_wide(each, code) for each in self._secrets for code in _WIDE]

    @property
    def fingerprint(self) -> bytes:
        """The same for the same options and secrets."""
        said = msgspec.msgpack.encode((2, self.options, self._secrets))
        return hashlib.blake2b(said, digest_size=16).digest()

    def includes(self, path: str, *, folder: bool) -> bool:
        """Whether the user wants it, whatever else is said of it."""
        if not self.options.include:
            return False
        return self._include.decide(os.fsencode(path), folder=folder, effort=self._effort) is True

    def excludes(self, path: str, *, folder: bool) -> bool:
        """Whether the user doesn't want it."""
        if not self.options.exclude:
            return False
        return self._exclude.decide(os.fsencode(path), folder=folder, effort=self._effort) is True

    def holds_secret(self, data: bytes) -> bool:
        """Whether the value of a configured key stands in there."""
        if any(each in data for each in self._secrets):
            return True
        return b"\0" in data and any(each in data for each in self._wide)

    @property
    def longest_secret(self) -> int:
        """In bytes, as it may stand in a file."""
        return max((len(each) for each in (*self._wide, *self._secrets)), default=0)


_WIDE = ("utf-16-le", "utf-16-be")


def _wide(secret: bytes, encoding: str) -> bytes:
    return secret.decode("utf-8", "replace").encode(encoding)


def _lines(patterns: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(pattern) + b"\n" for pattern in patterns)


def secret_by_name(folder: str, name: str, *, is_folder: bool) -> bool:
    """Whether a name is one that secrets have. `folder` is the name of the folder that it is in."""
    lower = name.lower()
    if (folder.lower(), lower) in _IN_FOLDERS:
        return True
    if lower.startswith(".env"):
        return True
    if is_folder:
        return lower in _FOLDERS
    return lower in _NAMES or lower.startswith(_PREFIXES) or lower.endswith(_SUFFIXES)


def credentials_in(data: bytes) -> Reason | None:
    """Whether a private key, or one of a cloud, stands in there as text."""
    if any(word in data for word in _KEY_WORDS) and _PRIVATE_KEY.search(data) is not None:
        return "private key"
    if any(word in data for word in _CLOUD_WORDS) and _CLOUD_KEY.search(data) is not None:
        return "cloud credentials"
    return None
