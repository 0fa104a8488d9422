# SPDX-License-Identifier: Apache-2.0
"""What journeys through the page (page.py) have in common."""
import json
import os

from service import Failed

READY = "document.documentElement.dataset.ready === 'graph'"


def expect(found, wanted, what):
    if found != wanted:
        raise Failed(f"{what}: {found!r}, expected {wanted!r}")


class Visit:
    def __init__(self, chrome, server, shots, axe=None):
        self.chrome, self.server, self.shots, self.axe = chrome, server, shots, axe
        self.forgotten, self.frames = [], 100

    def forget(self, path):
        """Deletes a graph or version once the page that may still be asking for it is left."""
        self.forgotten.append(path)

    def go(self, address):
        self.chrome.open("about:blank")
        while self.forgotten:
            self.server.call("DELETE", self.forgotten.pop())
        self.chrome.open(f"{self.server.url}/{address}")

    def graph(self, name, more=""):
        self.go(f"#/g/{name}/graph{more}")
        self.chrome.wait(READY, f"the drawing of {name}")

    def heap(self):
        """Bytes in use after the garbage went."""
        self.chrome.send("HeapProfiler.collectGarbage")
        return self.chrome.send("Runtime.getHeapUsage")["usedSize"]

    def shot(self, name):
        if self.shots:
            self.chrome.screenshot(os.path.join(self.shots, f"{name}.png"))

    def side(self):
        return self.chrome.run("document.querySelector('aside.side').innerText")


# ---- the drawing -------------------------------------------------------------------------------
def pixel(chrome, node, right, down):
    """[red, green, blue] of the drawing on a node's card: so many pixels of the drawing to the right and
    down, or that part of its height."""
    return chrome.run(f"(() => {{ const s = board.scene.byId.get('n ' + {json.dumps(node)});"
                      f" const y = {down} < 1 ? s.h * {down} : {down}, k = board.scale * devicePixelRatio;"
                      " board.draw(), board.paint();"
                      f" return [...board.context.getImageData((s.x + {right} - board.x) * k,"
                      " (s.y + y - board.y) * k, 1, 1).data].slice(0, 3); })()")


def choose(chrome, label, value):
    """Takes an entry of a list."""
    chrome.run(f"(() => {{ const s = document.querySelector('select[aria-label=\"{label}\"]');"
               f" s.value = {json.dumps(value)}; s.dispatchEvent(new Event('change')); }})()")
