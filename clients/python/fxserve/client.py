# SPDX-License-Identifier: Apache-2.0
"""Requests to a server. Standard library and numpy only."""
from __future__ import annotations

import http.client
import json
import os
import secrets
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Mapping, Sequence, cast

import numpy

from .arrays import decode, encode, structured


class Error(Exception):
    """An answer that is no success: `status`, the server's `code`, and the whole `reply`."""

    def __init__(self, status: int, reply: dict[str, Any]):
        super().__init__(reply.get("error", f"status {status}"))
        self.status, self.code, self.reply = status, reply.get("code", ""), reply


def _path(name: str, version: int | str | None = None) -> str:
    of = "" if version is None else f"/versions/{urllib.parse.quote(str(version), safe='')}"
    return f"/v1/graphs/{urllib.parse.quote(name, safe='')}{of}"


class Client:
    """One server. Makes a connection for each request, so threads may share it."""

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = 300):
        self.url = (url or os.environ.get("FXSERVE_URL") or "http://127.0.0.1:8080").rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"a server's address is like http://127.0.0.1:8080, not {self.url!r}")
        self.token, self.timeout = token or os.environ.get("FXSERVE_TOKEN"), timeout

    def request(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json",
                query: Mapping[str, Any] | None = None) -> bytes:
        """The body of the answer; Error if it is no success, OSError if there is none."""
        text = urllib.parse.urlencode({k: v for k, v in (query or {}).items() if v is not None})
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        asked = urllib.request.Request(f"{self.url}{path}{'?' if text else ''}{text}", body, headers,
                                       method=method)
        try:
            with urllib.request.urlopen(asked, timeout=self.timeout) as answer:
                return cast(bytes, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                data = error.read()
            try:
                reply = json.loads(data)
            except ValueError:
                reply = {"error": f"{error.code} {error.reason}"}
            raise Error(error.code, reply if isinstance(reply, dict) else {}) from None
        except http.client.HTTPException as error:
            raise OSError(f"no answer of HTTP: {error!r}") from error

    def upload(self, name: str | None, parts: Mapping[str, bytes], **query: Any) -> dict[str, Any]:
        """Files of an upload by the part's name, such as "graph", "weights", "samples"."""
        boundary, body = secrets.token_hex(16), []
        for part, data in parts.items():
            body += [f'--{boundary}\r\nContent-Disposition: form-data; name="{part}"; filename="{part}"'
                     "\r\n\r\n".encode(), data, b"\r\n"]
        body.append(f"--{boundary}--\r\n".encode())
        method, path = ("POST", "/v1/graphs") if name is None else ("PUT", _path(name))
        kind = f"multipart/form-data; boundary={boundary}"
        return cast(dict[str, Any], json.loads(self.request(method, path, b"".join(body), kind, query)))

    def run(self, name: str, body: dict[str, Any], version: int | str | None = None) -> dict[str, Any]:
        """A run with its body as docs/api.md has it; the reply as it comes, arrays as base64."""
        data = json.dumps({"encoding": "b64", **body}, default=encode).encode()
        return cast(dict[str, Any], json.loads(self.request("POST", _path(name, version) + "/run", data)))

    def call(self, name: str, /, *args: Any, named: Mapping[str, Any] | None = None,
             version: int | str | None = None, overrides: Sequence[dict[str, Any]] = (),
             mode: str | None = None, precision: str | None = None, tolerance: float | None = None,
             seed: int | None = None, **kwargs: Any) -> Any:
        """Runs a graph. Inputs are arrays, numbers or trees of them, all by position or all by name;
        `named` is a dict of them, whatever they are called. `version` is a number or an alias,
        `overrides` are rules as docs/overriding.md has them, the others as in docs/api.md. Returns
        what the graph returns, with arrays for its tensors."""
        if bool(args) + bool(kwargs) + (named is not None) > 1:
            raise TypeError("inputs go all by position, all by name, or all in named={…}")
        if not isinstance(named, (Mapping, type(None))):
            raise TypeError(f"named= is a dict of inputs, not {type(named).__name__}")
        options = {"overrides": overrides, "mode": mode, "precision": precision, "tolerance": tolerance,
                   "seed": seed}
        for key, value in (options | {"version": version}).items():
            if not isinstance(value, (str, int, float, list, tuple, numpy.number, type(None))):
                raise TypeError(f"{key}= is an option of call and no {type(value).__name__}; "
                                "an input of that name goes in named={…}")
        inputs = encode(kwargs or list(args) if named is None else named)
        given = {key: value for key, value in options.items() if value not in (None, (), [])}
        reply = self.run(name, {"inputs": inputs, **given}, version)
        leaves = [decode(entry) for entry in reply["outputs"]]
        if "structure" in reply:
            return structured(reply["structure"], leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def profile(self, name: str, *, version: int | str | None = None, show: bool = True) -> dict[str, Any]:
        """Where the time of the last runs went; prints it as a table unless show=False."""
        path = _path(name, version) + "/profile"
        if show:
            print(self.request("GET", path, query={"form": "text"}).decode(), end="")
        return cast(dict[str, Any], json.loads(self.request("GET", path)))
