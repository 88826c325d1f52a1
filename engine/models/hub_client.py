"""How this program speaks to the hub: address, certificates, proxies and token, and one problem with one action for each fault."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

import engine
from engine.models.download_types import DownloadProblem
from engine.models.hub_token import read_token

DEFAULT_ENDPOINT = "https://huggingface.co"
CONNECT_S, READ_S = 10.0, 15.0  # a connection that says nothing for this long counts as lost
API_ATTEMPTS = 3
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0  # between two tries, doubling
LONGEST_ANSWER_S = 5.0  # somebody waits for what ``ask`` brings
PASSING = frozenset({408, 425, 500, 502, 503, 504})


def endpoint() -> str:
    """The hub's address, HF_ENDPOINT where that is set."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or DEFAULT_ENDPOINT


def file_address(repository: str, revision: str, path: str) -> str:
    """Where a file's bytes are asked for; the answer may lead to another host."""
    return f"{endpoint()}/{repository}/resolve/{quote(revision, safe='')}/{quote(path)}"


def client_settings(token: str | None) -> dict[str, Any]:
    """Settings of an httpx client, sync or async. ``token`` None takes the kept one. Raises ``DownloadProblem``.

    Redirects are followed; the client itself drops the token where one leads to another host. Proxies come from the environment.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise DownloadProblem("network", "HF_HUB_OFFLINE forbids asking the hub", "unset HF_HUB_OFFLINE and start again.")
    if not _is_address(endpoint()):
        raise DownloadProblem("network", f"{endpoint()} cannot be reached", "check HF_ENDPOINT.")
    token = read_token() if token is None else token
    headers = {"User-Agent": f"slipstream/{engine.__version__}", "Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
    return {"headers": headers, "timeout": timeout, "follow_redirects": True, "verify": certificates()}


def certificates() -> ssl.SSLContext:
    """The system's trusted certificates, and those of SSL_CERT_FILE, REQUESTS_CA_BUNDLE or SSL_CERT_DIR beside them."""
    import truststore

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file = os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE")
    folder = os.environ.get("SSL_CERT_DIR")
    if file or folder:
        try:
            context.load_verify_locations(file or None, folder or None)
        except (OSError, ssl.SSLError) as error:
            what = f"The certificate file {file or folder} cannot be read"
            raise DownloadProblem("certificate", what, "check SSL_CERT_FILE and REQUESTS_CA_BUNDLE.") from error
    return context


def ask(path: str, parameters: dict[str, Any] | None = None, token: str | None = None) -> Any:
    """The JSON that the hub's API answers at ``path``; passing faults are tried again. ``token`` None takes the kept one.

    Raises ``DownloadProblem``.
    """
    with httpx2.Client(**client_settings(token)) as client:
        for attempt in range(API_ATTEMPTS):
            last = attempt == API_ATTEMPTS - 1
            try:
                response = client.get(f"{endpoint()}/api/{path}", params=parameters)
                if response.status_code == 200:
                    return response.json()
            except httpx2.RequestError as error:
                if last or not is_passing(error):
                    raise transport_problem(error) from None
                time.sleep(backoff(attempt))
                continue
            except ValueError:
                raise DownloadProblem("network", f"{host()} gave an answer that is not the hub's", "check HF_ENDPOINT.") from None
            wait = retry_wait(response, attempt)
            if last or wait is None or wait > LONGEST_ANSWER_S:
                raise answer_problem(response, path.removeprefix("models/").split("/revision/")[0])
            time.sleep(wait)
    raise AssertionError("unreachable")


def host() -> str:
    """The hub's host, for messages: without the password that may stand before it."""
    return urlsplit(endpoint()).netloc.rpartition("@")[2]


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(httpx2.URL(text).host) and " " not in text
    except (ValueError, httpx2.InvalidURL):
        return False


def is_passing(error: httpx2.RequestError) -> bool:
    """Whether trying again may help without anybody doing anything."""
    return transport_problem(error).kind == "network"


def retry_wait(response: httpx2.Response, attempt: int) -> float | None:
    """Seconds to wait before asking again after this answer; None where asking again cannot help."""
    if response.status_code == 429 or response.status_code == 503:
        asked = response.headers.get("Retry-After", "")
        if asked.isdigit():
            return float(asked)
    if response.status_code == 429 or response.status_code in PASSING:
        return backoff(attempt)
    return None


def backoff(attempt: int) -> float:
    """Seconds to wait after the failed try number ``attempt``, counted from 0."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)


def transport_problem(error: httpx2.RequestError) -> DownloadProblem:
    """What a failed connection means. No address of it is repeated: signed ones are secrets."""
    if isinstance(error, httpx2.TooManyRedirects | httpx2.DecodingError):
        action = "if this network has a login page, log in, then try again."
        return DownloadProblem("network", f"{host()} gave an answer that is not the hub's", action)
    causes = [repr(cause) for cause in _causes(error)]
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)) or "CERTIFICATE_VERIFY" in "".join(causes):
        return DownloadProblem(
            "certificate",
            f"The certificate of {host()} is not trusted here",
            "if your network inspects traffic, add its certificate to the system or name its file in SSL_CERT_FILE.",
        )
    if isinstance(error, httpx2.ProxyError):
        return DownloadProblem(
            "proxy", "The proxy refused the connection", "check HTTPS_PROXY and the proxy's user name and password."
        )
    if _uses_proxy() and isinstance(error, httpx2.ConnectError):
        return DownloadProblem("proxy", "The proxy cannot be reached", "check HTTPS_PROXY, or the proxy in the system's settings.")
    return DownloadProblem("network", f"{host()} cannot be reached", "check the network and try again.")


def answer_problem(response: httpx2.Response, repository: str) -> DownloadProblem:
    """What an answer that is not 200 means, for a question about ``repository``."""
    status, code = response.status_code, response.headers.get("X-Error-Code")
    message = response.headers.get("X-Error-Message", "")
    page = f"{endpoint()}/{repository}"
    had_token = "Authorization" in response.request.headers
    if code == "GatedRepo":
        action = (
            "accept them on its page with the account that your token belongs to, then try again."
            if had_token
            else "accept them on its page, then give Slipstream an access token of that account."
        )
        return DownloadProblem("gated", f"{repository} is given only to those who accept its terms", action, page)
    if status == 407:
        return DownloadProblem("proxy", "The proxy asks for a user name and password", "put them into HTTPS_PROXY.")
    if status == 429:
        asked = response.headers.get("Retry-After", "")
        when = f"in {int(asked):,} seconds" if asked.isdigit() else "in some minutes"
        return DownloadProblem("rate", f"{host()} was asked too often", f"try again {when}; with an access token it allows more.")
    unknown = code in ("RepoNotFound", "RevisionNotFound", "EntryNotFound") or status in (404, 410)
    if unknown or (status == 401 and not had_token and not message):
        action = "check the name; a private one needs an access token."
        return DownloadProblem("missing", f"The hub has no {repository}, or it is private", action)
    if status in (401, 403):
        page = f"{endpoint()}/settings/tokens"
        if had_token:
            action = "make a new one and give it to Slipstream."
            return DownloadProblem("token", "The access token is not valid or does not allow this", action, page)
        return DownloadProblem("token", f"{repository} needs an access token", "give Slipstream one.", page)
    return DownloadProblem("network", f"{host()} has a fault (status {status})", "try again later.")


def _uses_proxy() -> bool:
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(endpoint())
    return address.scheme in getproxies() and not proxy_bypass(address.hostname or "")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
