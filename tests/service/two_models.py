# SPDX-License-Identifier: Apache-2.0
"""Makes two_models.pt2, for scenarios: an archive of two models, one with weights. Run in this
folder, with torch 2.13."""
import torch
from torch.export.pt2_archive._package import package_pt2


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.by = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x):
        return x * self.by


programs = {name: torch.export.export(module, (torch.ones(2),))
            for name, module in (("relu", torch.nn.ReLU()), ("scale", Scale()))}
for program in programs.values():
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names the folder
package_pt2("two_models.pt2", exported_programs=programs)
