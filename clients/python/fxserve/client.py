# SPDX-License-Identifier: Apache-2.0
"""Requests to a server, arrays as JSON and back. Standard library and numpy only."""
from __future__ import annotations

import base64
import http.client
import json
import os
import secrets
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Mapping, Sequence, cast

import numpy


class Error(Exception):
    """An answer that is no success: `status`, the server's `code`, and the whole `reply`."""

    def __init__(self, status: int, reply: dict[str, Any]):
        super().__init__(reply.get("error", f"status {status}"))
        self.status, self.code, self.reply = status, reply.get("code", ""), reply


def encode(value: Any) -> Any:
    """An argument as JSON: arrays and torch's tensors with their bytes, tuples as lists, NaN as text."""
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not numpy.isfinite(value):
        return json.dumps(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__module__.split(".")[0] == "torch":
        from .samples import raw
        dtype, data = str(value.dtype).removeprefix("torch."), raw(value)
    else:
        value = numpy.asarray(value)
        dtype, data = value.dtype.name, value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
    return {"dtype": dtype, "shape": list(value.shape), "b64": base64.b64encode(data).decode()}


def decode(entry: dict[str, Any]) -> Any:
    """One output of a reply. numpy lacks bfloat16 and float8: they come as float32, float8 by torch."""
    if "b64" not in entry:
        value = entry.get("value")
        return float(value) if value in ("NaN", "Infinity", "-Infinity") else value
    data, name = bytearray(base64.b64decode(entry["b64"])), entry["dtype"]
    if name.startswith("float8"):
        import torch
        codes = torch.from_numpy(numpy.frombuffer(data, numpy.uint8))
        array = codes.view(getattr(torch, name)).float().numpy()
    elif name == "bfloat16":
        array = (numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    else:
        array = numpy.frombuffer(data, name)
    return array.reshape(entry["shape"])


def structured(structure: Any, leaves: Sequence[Any]) -> Any:
    """The graph's own structure with its leaves."""
    if isinstance(structure, list):
        return [structured(item, leaves) for item in structure]
    if not isinstance(structure, dict):
        return structure
    if "$out" in structure:
        return leaves[structure["$out"]]
    if "$tuple" in structure:
        return tuple(structured(item, leaves) for item in structure["$tuple"])
    return {key: structured(item, leaves) for key, item in structure.items()}


class Client:
    """One server. Makes a connection for each request, so threads may share it."""

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = 300):
        self.url = (url or os.environ.get("FXSERVE_URL") or "http://127.0.0.1:8080").rstrip("/")
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
        path = "/v1/graphs" if name is None else f"/v1/graphs/{urllib.parse.quote(name)}"
        kind, method = f"multipart/form-data; boundary={boundary}", "POST" if name is None else "PUT"
        return cast(dict[str, Any], json.loads(self.request(method, path, b"".join(body), kind, query)))

    def run(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """A run with its body as docs/api.md has it; the reply as it comes, arrays as base64."""
        path, data = f"/v1/graphs/{urllib.parse.quote(name)}/run", json.dumps({"encoding": "b64", **body})
        return cast(dict[str, Any], json.loads(self.request("POST", path, data.encode())))

    def call(self, name: str, *args: Any, overrides: Sequence[dict[str, Any]] = (), mode: str | None = None,
             precision: str | None = None, tolerance: float | None = None, seed: int | None = None,
             **kwargs: Any) -> Any:
        """Runs a graph. Inputs are arrays, numbers or trees of them, all by position or all by name;
        `overrides` are rules as docs/overriding.md has them, the others as in docs/api.md. Returns
        what the graph returns, with arrays for its tensors."""
        if args and kwargs:
            raise TypeError("inputs go all by position or all by name")
        body: dict[str, Any] = {"inputs": encode(kwargs or list(args))}
        given = {"overrides": list(overrides) or None, "mode": mode, "seed": seed, "precision": precision,
                 "tolerance": tolerance}
        reply = self.run(name, body | {key: value for key, value in given.items() if value is not None})
        leaves = [decode(entry) for entry in reply["outputs"]]
        if "structure" in reply:
            return structured(reply["structure"], leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def profile(self, name: str, *, show: bool = True) -> dict[str, Any]:
        """Where the time of the last runs went; prints it as a table unless show=False."""
        path = f"/v1/graphs/{urllib.parse.quote(name)}/profile"
        if show:
            print(self.request("GET", path, query={"form": "text"}).decode(), end="")
        return cast(dict[str, Any], json.loads(self.request("GET", path)))
