"""Make a self-signed certificate, to try out TLS. Clients need its file to trust it."""

import datetime
import ipaddress
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from inlink.base.folder import atomic_file
from inlink.errors import OutputError

DAYS = 90


def make(folder: Path, names: Iterable[str]) -> tuple[Path, Path]:
    """Write a new key and certificate; return the files of certificate and key.

    Parameters
    ----------
    folder : Path
        The folder of the files, made if it is missing. The key is readable only by its owner.
    names : iterable of str
        Host names and addresses of the server, besides this machine's name and loopback.

    Raises
    ------
    inlink.errors.OutputError
        If the files cannot be written.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "inlink serve --self-signed")])
    now = datetime.datetime.now(datetime.UTC)
    known = dict.fromkeys(["localhost", "127.0.0.1", "::1", socket.gethostname(), *names])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in known]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = folder / "self-signed.pem", folder / "self-signed.key"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, text in zip(files, (certificate.public_bytes(Encoding.PEM), private), strict=True):
            with atomic_file(file, secret=True) as part:
                part.write_bytes(text)
    except OSError as error:
        raise OutputError(
            f"{folder}: the certificate cannot be written: {os.strerror(error.errno or 0)}"
        ) from None
    return files


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
