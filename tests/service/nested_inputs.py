# SPDX-License-Identifier: Apache-2.0
"""Makes nested_inputs.pt2, for scenarios: a dict within a dict, an int, and an output that is None.
Run in this folder, with torch 2.13."""
import torch


class Nested(torch.nn.Module):
    def forward(self, batch, n: int):
        return batch["a"] * n + batch["b"]["c"], None


SIZE = {0: torch.export.Dim.AUTO}
EXAMPLE = {"a": torch.ones(4, 3), "b": {"c": torch.ones(4, 3)}}
program = torch.export.export(Nested(), (EXAMPLE, 5), dynamic_shapes={"batch": {"a": SIZE, "b": {"c": SIZE}},
                                                                      "n": torch.export.Dim.DYNAMIC})
for node in program.graph.nodes:
    node.meta.pop("stack_trace", None)  # it names the folder
torch.export.save(program, "nested_inputs.pt2")
