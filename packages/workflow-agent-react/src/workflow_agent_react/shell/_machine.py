"""What a sandbox shows of this machine: programs, and of `/etc` what they need."""

from __future__ import annotations

import fnmatch
import os
from functools import cache
from pathlib import Path

from workflow_agent_react.shell._mounts import FROM_FILE, Mounts

_PROGRAMS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"),
    *("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/var/guix/profiles"),
    *("/var/lib/dpkg", "/var/lib/gems", "/var/lib/ghc", "/var/lib/texmf"),
    "/sys/devices/system/cpu",  # how many processors there are
)
"""Not `/var`, `/srv`, `/mnt`, `/media` and what else there is: they hold data, keys and sockets."""

_ETC = (
    *("alternatives", "crypto-policies", "fonts", "java*", "ld.so.conf.d", "maven", "mono"),
    *("ImageMagick*", "perl", "pki/ca-trust/extracted", "pki/tls/certs", "python*", "R"),
    *("sgml", "ssl/certs", "terminfo", "texmf", "xml"),
    *("adjtime", "debian_version", "gai.conf", "host.conf", "hosts", "ld.so.cache", "ld.so.conf"),
    *("localtime", "locale.alias", "locale.conf", "lsb-release", "magic", "magic.mime"),
    *("manpath.config", "mime.types", "mtab", "networks", "nsswitch.conf", "os-release"),
    *("papersize", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "protocols", "resolv.conf"),
    *("services", "shells", "ssl/cert.pem", "ssl/openssl.cnf", "*-release", "timezone"),
)
"""Nothing that a person or a service keeps a password, a token or a key in."""

_OWN_ETC = Path(__file__).with_name("etc")


@cache
def machine() -> Mounts:
    """The programs of this machine and what they need, read only. Looked up once."""
    mounts = Mounts()
    for path in _PROGRAMS:
        _show(mounts, path)
    for path in _found_in_etc():
        _show(mounts, path)
    for name in ("passwd", "group"):  # with the one user that commands run as
        mounts.put(f"/etc/{name}", "--file", FROM_FILE, f"/etc/{name}", file=_OWN_ETC / name)
    return mounts


def _found_in_etc() -> list[str]:
    names = sorted(os.listdir("/etc")) if os.path.isdir("/etc") else []
    found: list[str] = []
    for pattern in _ETC:
        first, _, rest = pattern.partition("/")
        found += [f"/etc/{name}/{rest}".rstrip("/") for name in fnmatch.filter(names, first)]
    return list(dict.fromkeys(filter(os.path.exists, found)))


def _show(mounts: Mounts, path: str) -> None:
    """A link as a link, where what it leads to is shown; a file as a copy, which takes no mount."""
    if os.path.islink(path):
        target = os.readlink(path)
        whole = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if whole.startswith(("/usr/", "/proc/", "/etc/")) or path.count("/") == 1:
            mounts.put(path, "--symlink", target, path)
            return
    if os.path.isdir(path):
        mounts.put(path, "--ro-bind", path, path)
    elif os.path.isfile(path):
        mounts.put(path, "--file", FROM_FILE, path, file=Path(path))
