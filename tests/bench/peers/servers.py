# SPDX-License-Identifier: Apache-2.0
"""Model servers from PyPI with the models of models.py, each written as its own documents say:
servers.py SERVER PORT, SERVER one of SERVERS below. $BENCH_MODEL is one of models.py, `npy` (first,
with .npy bodies) or MODEL-batched. PyTorch runs it, on one thread.
"""
import io
import json
import os
import sys

import numpy as np
import torch

from models import SHAPES, model

KIND = os.environ["BENCH_MODEL"]
NAME = "first" if KIND == "npy" else KIND.removesuffix("-batched")
MAX_BATCH, WAIT_MS = 32, 1


def arrays(name, x):
    with torch.inference_mode():
        return model_of(name)(torch.from_numpy(x)).numpy()


def model_of(name, made={}):
    if name not in made:
        made[name] = model(name)
    return made[name]


def fastapi(port):
    import uvicorn
    from fastapi import FastAPI, Request, Response
    app = FastAPI()

    @app.get("/ready")
    def ready():
        return {}

    @app.post("/{name}")
    async def run(name, request: Request):
        x = np.array((await request.json())["inputs"]["x"], np.float32)
        return Response(json.dumps({"data": arrays(name, x).tolist()}), media_type="application/json")

    @app.post("/npy/{name}")
    async def run_npy(name, request: Request):
        out = io.BytesIO()
        np.save(out, arrays(name, np.load(io.BytesIO(await request.body()))))
        return Response(out.getvalue(), media_type="application/octet-stream")

    model_of(NAME)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def mosec(port):
    import mosec_peer
    mosec_peer.serve(port, MAX_BATCH, WAIT_MS)


def litserve(port):
    import litserve_peer
    litserve_peer.serve(port, MAX_BATCH, WAIT_MS)


def kserve(port):
    from kserve import InferOutput, InferResponse, Model, ModelServer

    class Peer(Model):
        def __init__(self, name):
            super().__init__(name)
            self.ready = True

        def predict(self, payload, headers=None, response_headers=None):
            y = arrays(self.name, payload.inputs[0].as_numpy())
            out = InferOutput(name="y", shape=list(y.shape), datatype="FP32")
            out.set_data_from_numpy(y, binary_data=payload.use_binary_outputs)
            return InferResponse(response_id="", model_name=self.name, infer_outputs=[out],
                                 use_binary_outputs=payload.use_binary_outputs)

    ModelServer(http_port=port, enable_grpc=False, access_log_format="").start([Peer(NAME)])


def mlserver(port):
    import mlserver_peer
    mlserver_peer.serve(port, MAX_BATCH, WAIT_MS)


def triton(port):
    from pytriton.decorators import batch
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
    from pytriton.triton import Triton, TritonConfig

    def one(requests):
        return [{"y": arrays(NAME, request["x"])} for request in requests]

    @batch
    def batched(x):
        return {"y": arrays(NAME, x)}

    def tensor(name, shape):
        return Tensor(name=name, dtype=np.float32, shape=shape)

    config = TritonConfig(http_address="127.0.0.1", http_port=port, grpc_port=port + 1, metrics_port=port + 2)
    with Triton(config=config) as server:
        shape = SHAPES[NAME]
        out = arrays(NAME, np.zeros(shape, np.float32)).shape
        server.bind(model_name=NAME, infer_func=one, config=ModelConfig(batching=False),
                    inputs=[tensor("x", shape)], outputs=[tensor("y", out)])
        delay = DynamicBatcher(max_queue_delay_microseconds=WAIT_MS * 1000)
        server.bind(model_name=f"{NAME}-batched", infer_func=batched,
                    config=ModelConfig(max_batch_size=MAX_BATCH, batcher=delay),
                    inputs=[tensor("x", shape[1:])], outputs=[tensor("y", out[1:])])
        server.serve()


SERVERS = {"fastapi": fastapi, "mosec": mosec, "litserve": litserve, "kserve": kserve, "mlserver": mlserver,
           "triton": triton}

if __name__ == "__main__":
    SERVERS[sys.argv[1]](int(sys.argv[2]))
