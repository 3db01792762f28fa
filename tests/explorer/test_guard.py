"""Strangers, huge bodies and slow ones do not get past the guard."""

from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from gcb.explorer import guard as module
from gcb.explorer.guard import MOST_BYTES, Guard


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the length of the body."""
    message = await receive()
    assert not message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(message["body"])).encode()})


async def answer(method: str = "GET", names: Iterable[str] = (), **request: Any) -> httpx.Response:
    transport = httpx.ASGITransport(Guard(echo, names))  # pyright: ignore[reportArgumentType]
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        return await client.request(method, "/", **request)


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "192.168.1.7", "LOCALHOST"])
async def test_this_machine_and_addresses_are_answered(host: str) -> None:
    assert (await answer(headers={"host": host})).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", "localhost.evil.example", "[::1"])
async def test_a_name_that_is_not_ours_is_refused(host: str) -> None:
    """DNS rebinding: the browser believes that this server is another site's."""
    refused = await answer(headers={"host": host})
    assert refused.status_code == 403
    assert "is not called" in refused.json()["reason"]


@pytest.mark.anyio
async def test_further_names_can_be_given() -> None:
    assert (await answer(names=["robots.example"], headers={"host": "Robots.example"})).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8000", 200),
        ("http://127.0.0.1:9000", 403),
        ("http://evil.example", 403),
        ("null", 403),
        (None, 200),
    ],
)
async def test_only_pages_of_this_server_may_ask(origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert (await answer("POST", content=b"{}", headers=headers)).status_code == status
    assert (await answer("GET", headers=headers)).status_code == 200


@pytest.mark.anyio
async def test_bodies_are_whole_or_too_large() -> None:
    assert (await answer("POST", content=b"x" * MOST_BYTES)).text == str(MOST_BYTES)
    refused = await answer("POST", content=b"x" * (MOST_BYTES + 1))
    assert refused.status_code == 413
    assert "accepted: 65,536 bytes" in refused.json()["reason"]


@pytest.mark.anyio
async def test_a_body_without_a_length_is_counted_as_it_comes() -> None:
    async def parts() -> Any:
        for _ in range(100):
            yield b"x" * 1000

    assert (await answer("POST", content=parts())).status_code == 413


@pytest.mark.anyio
async def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import anyio

    monkeypatch.setattr(module, "BODY_SECONDS", 0.05)

    async def parts() -> Any:
        yield b"x"
        await anyio.sleep_forever()

    assert (await answer("POST", content=parts())).status_code == 408


@pytest.mark.anyio
async def test_every_answer_forbids_what_is_not_from_here() -> None:
    for response in (await answer(), await answer(headers={"host": "evil.example"})):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
