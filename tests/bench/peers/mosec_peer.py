# SPDX-License-Identifier: Apache-2.0
"""Mosec's server of one model, $BENCH_MODEL. Its workers are processes that import this file."""
import io
import sys

import numpy as np
from mosec import Server, Worker

from servers import KIND, NAME, arrays


class Json(Worker):
    def forward(self, data):
        return {"data": arrays(NAME, np.array(data["inputs"]["x"], np.float32)).tolist()}


class Batched(Worker):
    def forward(self, data):
        x = np.concatenate([np.array(row["inputs"]["x"], np.float32) for row in data])
        return [{"data": row[None].tolist()} for row in arrays(NAME, x)]


class Npy(Worker):
    def deserialize(self, data):
        return np.load(io.BytesIO(data))

    def serialize(self, data):
        out = io.BytesIO()
        np.save(out, data)
        return out.getvalue()

    def forward(self, data):
        return arrays(NAME, data)


def serve(port, max_batch, wait_ms):
    sys.argv = ["mosec", "--port", str(port), "--address", "127.0.0.1", "--timeout", "60000",
                "--log-level", "error"]
    server = Server()
    if KIND.endswith("-batched"):
        server.append_worker(Batched, num=1, max_batch_size=max_batch, max_wait_time=wait_ms)
    else:
        server.append_worker(Npy if KIND == "npy" else Json, num=1)
    server.run()
