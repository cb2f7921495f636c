"""How we speak HTTP to a model or embedding endpoint: one JSON document by POST, one answer, and what went wrong.

By urllib3, on which botocore stands too: an SDK would cost more import time than all the rest of a function.
"""

from __future__ import annotations

import json
import math
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError, SSLError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError
from urllib3.util import parse_url

from turngate.errors import BrokenInvariantError, ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from urllib3.util import Url

OK = 200
REDIRECTED = 300
BAD_REQUEST = 400
REQUEST_TIMEOUT = 408
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500
_MAX_RETRY_AFTER_S = 3600.0
_CONNECT_TIMEOUT_S = 3.0
_CHUNK = 1 << 16
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class StatusError(ModelUnavailableError):
    """Raised for a status that is not 2xx. Its text holds the status alone: providers echo the key and the prompt in
    their messages. Another 4xx is `rejected`: asking again would be refused again; the status tells the operator."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        by_status = {TOO_MANY_REQUESTS: "rate_limited", REQUEST_TIMEOUT: "timeout"}
        rejected = BAD_REQUEST <= status < SERVER_ERROR
        reason = by_status.get(status, "rejected" if rejected else "server_error")
        super().__init__(reason, f"HTTP {status}", _retry_after_ms(headers))
        self.status = status


class JsonEndpoint:
    """One URL that takes JSON by POST: `path` under `base_url`, whose query is kept. Redirects are not followed: they
    would carry the key and the prompt elsewhere. A certificate must be signed by an authority of the system, or of
    SSL_CERT_FILE; HTTPS_PROXY, HTTP_PROXY and NO_PROXY count, except for this machine itself.

    Raises BrokenInvariantError for an address of another kind, and for a key that no header can carry."""

    def __init__(
        self, base_url: str, path: str, *, api_key: str, most: int, max_idle_s: float = 60.0
    ) -> None:
        """`most`: how many bytes an answer may have, unpacked."""
        base = parse_url(base_url)
        if base.scheme not in ("http", "https") or not base.host:
            raise BrokenInvariantError(
                "the address of a model or embedding endpoint begins with https:// or http://"
            )
        self._url = base._replace(path=f"{(base.path or '').rstrip('/')}/{path}").url
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "user-agent": "turngate",
        }
        if key := api_key.strip():
            # http.client would refuse it as well, with the key in the error's text
            if not (key.isascii() and key.isprintable()):
                raise BrokenInvariantError("the API key holds characters that no header can carry")
            self._headers["authorization"] = f"Bearer {key}"
        self._most = most
        self._max_idle_s = max_idle_s
        self._manager = _manager_for(base)
        self._used = 0.0

    def post(self, document: object, *, timeout_s: float) -> bytes:
        """The body of a 2xx answer. `timeout_s` bounds the whole of it, connecting included. Half a surrogate pair,
        which no JSON parser takes, is sent as "?".

        Raises StatusError, or ModelUnavailableError `timeout`, `connection`, or `empty` for an answer too large. They
        are raised without their cause: it may hold what the endpoint said, and endpoints repeat keys and prompts."""
        body = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        deadline = time.monotonic() + timeout_s
        try:
            response = self._open(body, deadline)
            try:
                answer = self._read(response, deadline)
            except BaseException:
                response.close()
                raise
        except NewConnectionError:  # urllib3 counts it among the timeouts
            raise ModelUnavailableError("connection") from None
        except HTTPTimeoutError:
            raise ModelUnavailableError("timeout", f"no answer in {timeout_s:.1f} s") from None
        except HTTPError:
            raise ModelUnavailableError("connection") from None
        response.release_conn()
        return answer

    def _open(self, body: bytes, deadline: float) -> urllib3.BaseHTTPResponse:
        """The answer's head. A connection that was kept may have died unseen, most of all while Lambda had frozen the
        sandbox: one that is cut before it answers is replaced, once, and one that was idle for long is not tried."""
        # the clock on the wall goes on while the sandbox is frozen; the monotonic one may not
        now = time.time()
        if now - self._used >= self._max_idle_s:
            self._manager.clear()
        self._used = now
        pool = self._manager.connection_from_url(self._url)
        made = pool.num_connections
        try:
            return self._send(body, deadline)
        except (ProtocolError, SSLError):
            if pool.num_connections > made:
                raise
        return self._send(body, deadline)

    def _send(self, body: bytes, deadline: float) -> urllib3.BaseHTTPResponse:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ModelUnavailableError("timeout", "no time left")
        return self._manager.request(
            "POST",
            self._url,
            body=body,
            headers=self._headers,
            timeout=urllib3.Timeout(total=left, connect=min(left, _CONNECT_TIMEOUT_S)),
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """All of a body. urllib3's timeout bounds each wait for bytes only, and endpoints under load send blank lines
        to keep a connection open for minutes."""
        if not OK <= response.status < REDIRECTED:
            raise StatusError(response.status, response.headers)
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            if time.monotonic() > deadline:
                raise ModelUnavailableError("timeout", "the answer came too slowly")
            body += chunk
            if len(body) > self._most:
                raise ModelUnavailableError("empty", f"an answer of more than {self._most} bytes")
        return bytes(body)


def _manager_for(url: Url) -> urllib3.PoolManager:
    """Connections to `url`, through the environment's proxy for it if there is one. The certificates are read once:
    urllib3 by itself reads them again for every connection."""
    tls = ssl.create_default_context() if url.scheme == "https" else None
    host = url.host or ""
    proxy = (
        None if host in _LOOPBACK or proxy_bypass(host.strip("[]")) else getproxies().get(url.scheme or "")
    )
    if not proxy:
        return urllib3.PoolManager(ssl_context=tls)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    auth = parse_url(proxy).auth
    headers = urllib3.make_headers(proxy_basic_auth=unquote(auth)) if auth else None
    return urllib3.ProxyManager(proxy, proxy_headers=headers, ssl_context=tls)


def _retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """`retry-after-ms` or `Retry-After` in seconds (RFC 9110, 10.2.3), at most an hour. A date is not read: providers
    send seconds, and their clock is not ours."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        try:
            wait = float(headers.get(name, "")) * factor
        except ValueError:
            continue
        if math.isfinite(wait) and wait >= 0:
            return round(min(wait, _MAX_RETRY_AFTER_S * 1000))
    return None
