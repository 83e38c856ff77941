"""Planted secrets: none of them reaches the store, whatever file they are in."""

from __future__ import annotations

import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from workflow_cas import MemoryStore, open_store
from workflow_workspace import FolderVersions, Versioned, read_files

KEY = b"sk-planted-0123456789abcdef"
LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDPLANTED"
PART = 1024 * 1024

NAMES = """
.env .env.local .env.production .envrc deploy/.env prod.env .netrc _netrc .npmrc .pypirc
.pgpass .git-credentials .ssh/config .ssh/id_rsa home/.ssh/known_hosts id_rsa id_ed25519
id_ecdsa server.key certs/tls.p12 a.pfx a.jks a.keystore a.kdbx a.ppk .aws/credentials
.aws/config .AWS/credentials .azure/accessTokens.json .config/gcloud/credentials.db
.kube/config kubeconfig .docker/config.json .dockercfg .boto .s3cfg .terraformrc
terraform.tfstate .terraform.d/credentials.tfrc.json
client_secret_1.apps.googleusercontent.com.json application_default_credentials.json
.vault-token .htpasswd .my.cnf .gnupg/secring.gpg .cargo/credentials.toml .gem/credentials
.config/gh/hosts.yml .ENV Id_Rsa .Netrc rclone.conf .databrickscfg .env.d/key
""".split()  # noqa: SIM905 - so many are better read like this

TEXTS = {
    "pem": f"-----BEGIN PRIVATE KEY-----\n{LINE}\n",
    "rsa": f"text before\n-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\n{LINE}",
    "openssh": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{LINE}\n",
    "encrypted": f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{LINE}\n",
    "pgp": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{LINE}\n",
    "service_account.json": f'{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{LINE}\\n"}}',
    "putty": f"PuTTY-User-Key-File-3: ssh-rsa\n{LINE}",
    "aws.ini": f"[default]\naws_secret_access_key = {LINE[:32]}/PLANTED\n",
    "aws.sh": f"export AWS_SECRET_ACCESS_KEY='{LINE[:32]}+PLANTED'\n",
    "azure": f"DefaultEndpointsProtocol=https;AccountKey={(LINE * 2)[:79]}PLANTED==;",
}

HARMLESS = {
    "docs.md": "A key begins with -----BEGIN PRIVATE KEY----- and then has lines.",
    "find.py": 'MARK = b"-----BEGIN RSA PRIVATE KEY-----"\n',
    "environment.py": "import os\nkey = os.environ['AWS_SECRET_ACCESS_KEY']\n",
    "keys.py": "sk-planted-0123",
    "env.example": "KEY=",
    "public.pem": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n",
    ".docker/Dockerfile": "FROM scratch\n",
}


def plant(folder: Path) -> None:
    for name in NAMES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("PLANTED by its name", encoding="utf-8")
    for name, text in (TEXTS | HARMLESS).items():
        (folder / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "texts" / name).write_text(text, encoding="utf-8")
    keyed = folder / "keyed"
    keyed.mkdir()
    (keyed / "config.py").write_bytes(b"KEY = '" + KEY + b"'")
    (keyed / "wide").write_text(f"\ufeffkey={KEY.decode()}", encoding="utf-16-le")
    (keyed / "between parts").write_bytes(b"x" * (2 * PART - 10) + KEY + b"y" * PART)
    (keyed / "at the end").write_bytes(b"x" * PART + KEY)
    (keyed / f"named {KEY.decode()}").write_text("x", encoding="utf-8")
    (keyed / f"folder {KEY.decode()}").mkdir()
    (keyed / "link").symlink_to(KEY.decode())
    (folder / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (keyed / f"{KEY.decode()}.log").write_text("x", encoding="utf-8")


def everything_in(store: Path) -> list[bytes]:
    """The bytes of all objects, as they were before they were deflated."""
    with closing(sqlite3.connect(store)) as database:
        rows = database.execute("SELECT size, data FROM object").fetchall()
    return [data if len(data) == size else zlib.decompress(data) for size, data in rows]


async def test_no_planted_secret_is_in_the_store(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    plant(folder)
    store_file = tmp_path / "store.db"
    async with open_store(store_file) as store:
        versions = FolderVersions(store, folder, cache=tmp_path / "cache", secrets=[KEY, b"short"])
        version = await versions.take(None)
        await store.commit(version.objects)
        entries = await read_files(store, version.hash)

    objects = everything_in(store_file)
    assert [each for each in objects if KEY in each or b"PLANTED" in each] == []
    assert KEY not in (tmp_path / "cache").read_bytes()
    assert {path for path, entry in entries.items() if entry.kind in {"file", "link"}} == {
        ".gitignore",
        *(f"texts/{name}" for name in HARMLESS),
    }
    reasons = {path: entry.reason for path, entry in entries.items() if entry.reason}
    assert {path for path, why in reasons.items() if why == "configured key"} == {
        f"keyed/{name}" for name in ("config.py", "wide", "between parts", "at the end", "link")
    }
    assert {reasons[f"texts/{name}"] for name in TEXTS} == {"private key", "cloud credentials"}


@pytest.mark.parametrize("name", [".env", "id_rsa"])
async def test_what_is_included_may_still_not_hold_a_configured_key(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"DEBUG=1")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path, Versioned(include=(name,)), secrets=[KEY])
    first = await versions.take(None)
    await store.commit(first.objects)
    (tmp_path / name).write_bytes(b"KEY=" + KEY)
    second = await versions.take(first.hash)
    await store.commit(second.objects)

    assert (await read_files(store, first.hash))[name].kind == "file"
    assert (await read_files(store, second.hash))[name].reason == "configured key"


async def test_a_link_to_a_secret_outside_is_kept_as_a_link(tmp_path: Path) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    folder.mkdir()
    outside.write_bytes(b"PLANTED")
    (folder / "link").symlink_to(outside)
    store = MemoryStore()
    version = await FolderVersions(store, folder).take(None)
    await store.commit(version.objects)

    assert (await read_files(store, version.hash))["link"].target == os.fspath(outside)
    assert not [each for each in version.objects if b"PLANTED" in each.data]
