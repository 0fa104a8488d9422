# SPDX-License-Identifier: Apache-2.0
"""Model servers from PyPI with the models of models.py, each written as its own documents say:
servers.py NAME PORT, NAME one of SERVERS below. PyTorch runs the models, on one thread.
"""
import io
import json
import sys

import numpy as np
import torch

from models import FLOATS, model

MODELS = ("tiny", "first", "mlp")
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

    for name in MODELS:
        model_of(name)
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

    models = [Peer(name) for name in MODELS]
    ModelServer(http_port=port, enable_grpc=False, access_log_format="").start(models)


def mlserver(port):
    import mlserver_peer
    mlserver_peer.serve(port, MAX_BATCH, WAIT_MS)


def triton(port):
    from pytriton.decorators import batch
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
    from pytriton.triton import Triton, TritonConfig

    def one(name):
        def infer(requests):
            return [{"y": arrays(name, request["x"])} for request in requests]
        return infer

    @batch
    def batched(x):
        return {"y": arrays("mlp", x)}

    config = TritonConfig(http_address="127.0.0.1", http_port=port, grpc_port=port + 1, metrics_port=port + 2)
    with Triton(config=config) as server:
        for name, shape, out in (("tiny", (3, 4), (3, 4)), ("first", (FLOATS,), (1000,)),
                                 ("mlp", (1, 784), (1, 10))):
            server.bind(model_name=name, infer_func=one(name), config=ModelConfig(batching=False),
                        inputs=[Tensor(name="x", dtype=np.float32, shape=shape)],
                        outputs=[Tensor(name="y", dtype=np.float32, shape=out)])
        delay = DynamicBatcher(max_queue_delay_microseconds=WAIT_MS * 1000)
        server.bind(model_name="mlp-batched", infer_func=batched,
                    config=ModelConfig(max_batch_size=MAX_BATCH, batcher=delay),
                    inputs=[Tensor(name="x", dtype=np.float32, shape=(784,))],
                    outputs=[Tensor(name="y", dtype=np.float32, shape=(10,))])
        server.serve()


SERVERS = {"fastapi": fastapi, "mosec": mosec, "litserve": litserve, "kserve": kserve, "mlserver": mlserver,
           "triton": triton}

if __name__ == "__main__":
    SERVERS[sys.argv[1]](int(sys.argv[2]))
