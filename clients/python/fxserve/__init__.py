# SPDX-License-Identifier: Apache-2.0
"""Client of fxserve, which executes PyTorch graphs over HTTP.

    import fxserve
    fxserve.push("net", model, (x,))            exports, uploads, verifies
    y = fxserve.call("net", x)                  arrays in, arrays out
    fxserve.profile("net")                      prints where the time went
    model = torch.compile(model, backend=fxserve.backend())

The server is that of FXSERVE_URL, else http://127.0.0.1:8080; `Client(url, token)` is another one.
`call` and `profile` need numpy only; `push`, `backend` and results of float8 need torch.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

from .client import Client, Error

if TYPE_CHECKING:
    import torch

__all__ = ["Client", "Error", "backend", "call", "profile", "push"]


def push(name: str, model: torch.nn.Module | Callable[..., Any], args: tuple[Any, ...],
         kwargs: Mapping[str, Any] | None = None, *, client: Client | None = None,
         **options: Any) -> dict[str, Any]:
    """`fxserve.pushing.push` to the server of the environment."""
    from .pushing import push as push_model
    return push_model(client or Client(), name, model, args, kwargs, **options)


def backend(url: str | None = None, token: str | None = None) -> Callable[..., Any]:
    """A backend of torch.compile that runs each captured graph on a server."""
    from .compiling import Backend
    return Backend(Client(url, token))


def call(name: str, /, *args: Any, **options: Any) -> Any:
    """`Client.call` of the server of the environment."""
    return Client().call(name, *args, **options)


def profile(name: str, **options: Any) -> dict[str, Any]:
    """`Client.profile` of the server of the environment."""
    return Client().profile(name, **options)
