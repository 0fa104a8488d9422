# SPDX-License-Identifier: Apache-2.0
"""LitServe's server of one model, $BENCH_MODEL. Its workers are processes that import this
file.
"""
import litserve
import numpy as np

from servers import KIND, NAME, arrays


class Api(litserve.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return np.array(request["inputs"]["x"], np.float32)

    def batch(self, inputs):
        return np.concatenate(inputs)

    def predict(self, x):
        return arrays(NAME, x)

    def unbatch(self, output):
        return list(output[:, None])

    def encode_response(self, output):
        return {"data": output.tolist()}


def serve(port, max_batch, wait_ms):
    batched = {"max_batch_size": max_batch, "batch_timeout": wait_ms / 1000}
    server = litserve.LitServer(Api(**batched) if KIND.endswith("-batched") else Api(), accelerator="cpu",
                                workers_per_device=1, timeout=60)
    server.run(host="127.0.0.1", port=port, log_level="error", generate_client_file=False, num_api_servers=1)
