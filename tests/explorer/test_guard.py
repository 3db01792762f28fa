"""The guard refuses other hosts and origins, large bodies and slow ones."""

from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from gcb.explorer import guard as module
from gcb.explorer.guard import MAX_BODY_BYTES, Guard


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the length of the body."""
    message = await receive()
    assert not message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(message["body"])).encode()})


async def respond(method: str = "GET", names: Iterable[str] = (), **request: Any) -> httpx.Response:
    transport = httpx.ASGITransport(Guard(echo, names))  # pyright: ignore[reportArgumentType]
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        return await client.request(method, "/", **request)


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "192.168.1.7", "LOCALHOST"])
async def test_localhost_and_ip_addresses_are_allowed(host: str) -> None:
    assert (await respond(headers={"host": host})).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", "localhost.evil.example", "[::1"])
async def test_other_host_names_are_refused(host: str) -> None:
    """DNS rebinding: the browser takes this server for another site's."""
    refused = await respond(headers={"host": host})
    assert refused.status_code == 403
    assert "host name" in refused.json()["detail"]


@pytest.mark.anyio
async def test_more_host_names_can_be_allowed() -> None:
    assert (await respond(names=["robots.example"], headers={"host": "Robots.example"})).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8000", 200),
        ("http://127.0.0.1:9000", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://[::1", 403),
        (None, 200),
    ],
)
async def test_posts_from_other_origins_are_refused(origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert (await respond("POST", content=b"{}", headers=headers)).status_code == status
    assert (await respond("GET", headers=headers)).status_code == 200


@pytest.mark.anyio
async def test_bodies_above_the_limit_are_refused() -> None:
    assert (await respond("POST", content=b"x" * MAX_BODY_BYTES)).text == str(MAX_BODY_BYTES)
    refused = await respond("POST", content=b"x" * (MAX_BODY_BYTES + 1))
    assert refused.status_code == 413
    assert "524,288 bytes" in refused.json()["detail"]


@pytest.mark.anyio
async def test_chunked_bodies_are_counted_as_they_arrive() -> None:
    async def parts() -> Any:
        for _ in range(100):
            yield b"x" * 10_000

    assert (await respond("POST", content=parts())).status_code == 413


@pytest.mark.anyio
async def test_bodies_that_never_end_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import anyio

    monkeypatch.setattr(module, "BODY_SECONDS", 0.05)

    async def parts() -> Any:
        yield b"x"
        await anyio.sleep_forever()

    assert (await respond("POST", content=parts())).status_code == 408


@pytest.mark.anyio
async def test_every_response_has_the_security_headers() -> None:
    for response in (await respond(), await respond(headers={"host": "evil.example"})):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
