# SPDX-License-Identifier: Apache-2.0
"""MLServer's server; it finds the class of a model by the name of this file."""
import asyncio

from mlserver import MLServer, ModelSettings, Settings
from mlserver.codecs import NumpyCodec
from mlserver.model import MLModel
from mlserver.types import InferenceResponse, MetadataTensor

from servers import NAME, arrays


class Peer(MLModel):
    async def load(self):
        return True

    async def predict(self, payload):
        y = arrays(self.name.removesuffix("-batched"), NumpyCodec.decode_input(payload.inputs[0]))
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", y)])


async def start(port, max_batch, wait_ms):
    settings = Settings(host="127.0.0.1", http_port=port, grpc_port=port + 1, metrics_port=port + 2,
                        parallel_workers=0, debug=False)
    # what its metadata says, so that tests/oip/conformance.py can ask it, too
    tensors = {key: [MetadataTensor(name=name, datatype="FP32", shape=[-1, 4])]
               for key, name in (("inputs", "x"), ("outputs", "y"))}
    models = [ModelSettings(name=NAME, implementation="mlserver_peer.Peer", **tensors),
              ModelSettings(name=f"{NAME}-batched", implementation="mlserver_peer.Peer",
                            max_batch_size=max_batch, max_batch_time=wait_ms / 1000)]
    await MLServer(settings).start(models)


def serve(port, max_batch, wait_ms):
    asyncio.run(start(port, max_batch, wait_ms))
