"""The environment of an endpoint's client: which certificates it trusts, and which proxy it takes."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.contract.scripted_http import Reply, ScriptedServer
from turngate.adapters.model_http import JsonEndpoint
from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-canary-4711"
ANSWER = b'{"answer": 42}'


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


def endpoint_at(url) -> JsonEndpoint:
    return JsonEndpoint(url, "chat", api_key=KEY, most=1000)


def refusal(endpoint) -> ModelUnavailableError:
    with pytest.raises(ModelUnavailableError) as caught:
        endpoint.post({}, timeout_s=5)
    return caught.value


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def certificate(folder: Path, subject: str) -> Path:
    """A file with a key and a certificate for `subject`, an IP address, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now - day, now + day
        )
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(subject))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{subject}.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@pytest.fixture
def tls_server(tmp_path):
    """A function: a running server whose certificate is for a subject, and the file of that certificate."""
    running = []

    def start(subject: str) -> tuple[ScriptedServer, Path]:
        file = certificate(tmp_path, subject)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        server = ScriptedServer(context)
        running.append(server.__enter__())
        return server, file

    yield start
    for server in running:
        server.__exit__()


def test_a_certificate_of_an_unknown_authority_is_refused_before_anything_is_sent(tls_server):
    server, _ = tls_server("127.0.0.1")
    assert refusal(endpoint_at(server.url)).reason == "connection"
    assert server.requests == []


def test_ssl_cert_file_names_the_authorities(tls_server, monkeypatch):
    server, file = tls_server("127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    server.replies.append(Reply(ANSWER))
    assert endpoint_at(server.url).post({}, timeout_s=5) == ANSWER


def test_a_certificate_for_another_host_is_refused(tls_server, monkeypatch):
    server, file = tls_server("127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert refusal(endpoint_at(server.url)).reason == "connection"
    assert server.requests == []


# ── proxies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_http_goes_through_the_proxy_of_the_environment(server, monkeypatch, scheme):
    monkeypatch.setenv("HTTP_PROXY", f"{scheme}us%20er:pass@127.0.0.1:{server.port}")
    server.replies.append(Reply(ANSWER))
    assert endpoint_at("http://model.invalid/v1").post({}, timeout_s=5) == ANSWER
    assert server.requests[0].path == "http://model.invalid/v1/chat"
    told = server.requests[0].headers["proxy-authorization"].removeprefix("Basic ")
    assert base64.b64decode(told) == b"us er:pass"


def test_https_goes_through_a_tunnel_whose_proxy_never_sees_the_key(server, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://us:er@127.0.0.1:{server.port}")
    server.replies.append(Reply(b"", 403))
    assert refusal(endpoint_at("https://model.invalid/v1")).reason == "connection"
    (asked,) = server.requests
    assert (asked.method, asked.path) == ("CONNECT", "model.invalid:443")
    assert "proxy-authorization" in asked.headers
    assert KEY not in json.dumps(dict(asked.headers))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_this_machine_itself_is_never_behind_the_proxy(server, monkeypatch, host):
    monkeypatch.setenv("HTTP_PROXY", server.url)
    assert refusal(endpoint_at(f"http://{host}:1")).reason == "connection"
    assert server.requests == []


def test_no_proxy_names_hosts_that_are_asked_directly(server, monkeypatch):
    """127.0.0.2: nobody listens there, and no name must be resolved."""
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.2")
    assert refusal(endpoint_at("http://127.0.0.2:1")).reason == "connection"
    assert server.requests == []
    server.replies.append(Reply(ANSWER))
    assert endpoint_at("http://127.0.0.3:1").post({}, timeout_s=5) == ANSWER
