"""A certificate authority of a test and what it signs."""

import subprocess
from pathlib import Path

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
STRICT = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")


def openssl(*words: str, cwd: Path) -> None:
    """Run it."""
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True)


THIS_MACHINE = "DNS:localhost,IP:127.0.0.1"


def make_certificates(
    path: Path,
    subject: str = "/CN=localhost",
    *,
    names: str = THIS_MACHINE,
    strict: bool = True,
) -> Path:
    """`ca.pem`, and `cert.pem` with `key.pem` for these names, signed by it; gives `path`.

    Not `strict` is an authority that does not say what its key is for: RFC 5280 asks for that and
    Python from 3.13 on does by itself; nats-server and its clients do not.
    """
    usage = STRICT if strict else ()
    authority = ("-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    openssl("req", *CURVE, *authority, *usage, cwd=path)
    openssl("req", *CURVE, "-keyout", "key.pem", "-out", "req.pem", "-subj", subject, cwd=path)
    extensions = [f"subjectAltName={names}"]
    if strict:
        extensions += ["authorityKeyIdentifier=keyid", "subjectKeyIdentifier=hash"]
    (path / "ext").write_text("\n".join(extensions) + "\n")
    words = ("-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    signed = ("-days", "2", "-extfile", "ext", "-out", "cert.pem")
    openssl("x509", "-req", *words, *signed, cwd=path)
    return path
