# SPDX-License-Identifier: Apache-2.0
"""The page at GET /, used in Debian's Chromium against the real server: page.py FXSERVE [--shots FOLDER].

Each journey is what a person does: real clicks, keys and files. After each one the page must have
reported no error, asked nobody but its server, and made no markup of texts. The last line is `N
passed, N failed`.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "service"))
from chrome import Chrome
from page_frames import check_frames
from page_keys import by_keyboard, focus_stays
from page_shows import (alone_words, check_compared, check_trial, earlier_graph, heat_by_choice,
                        heat_of_modules, nan_is_magenta, patch_by_pointing, upload_progress)
from page_visit import READY, Visit, expect, pixel
from service import (MODELS, ROOT, Failed, Server, Tally, model_file, multipart, tensor_of, write_npy,
                     write_safetensors)

TOKEN = "a-token-of-the-page-0123456789"
ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
COMPRESSED = 150000  # bytes of all files together


# ---- journeys ----------------------------------------------------------------------------------
def draw_a_digit(visit):
    """The pad reads a drawn one, and the heat of the graph is that of the run."""
    chrome = visit.chrome
    visit.graph("digits")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "the first run")
    chrome.click("button", "clear")
    x, y = chrome.place(".pad canvas")
    runs = visit.server.call("GET", "/v1").json()["runs"]
    chrome.drag([(x, y - 65 + 10 * k) for k in range(14)])
    chrome.wait("document.querySelector('.bars .best')?.textContent === '1'", "a one", 3)
    chrome.wait("board.look(1, {}).heat && board.heat.nodes.size > 5", "the heat")
    if visit.server.call("GET", "/v1").json()["runs"] < runs + 2:
        raise Failed("strokes were no runs")
    visit.shot("digits")


def start_on_digits(visit):
    """The first page has the digits graph, run and warm; a stroke moves its bars and its heat."""
    chrome = visit.chrome
    visit.go("#/")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "the first run")
    chrome.wait("board.scene?.shapes.length > 8 && board.heat.nodes.size > 5", "the drawing and its heat")
    chrome.wait("document.querySelector('.bars .best')?.textContent === '7'", "a seven")
    chrome.click("button", "clear")
    chrome.run("board.heat = {...board.heat, nodes: new Map()}")
    x, y = chrome.place(".pad canvas")
    chrome.drag([(x, y - 65 + 10 * k) for k in range(14)])
    chrome.wait("document.querySelector('.bars .best')?.textContent === '1'", "a one", 3)
    chrome.wait("board.heat.nodes.size > 5", "the heat of the stroke")
    visit.shot("start")


def find_the_slow_node(visit):
    """The list of slow nodes leads to one, its panel says what it is."""
    chrome = visit.chrome
    visit.graph("digits")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "the first run")
    chrome.wait_text("Where time goes", "aside.side")
    chrome.click("aside.side table button")
    chrome.wait_text("of the run", "aside.side")
    chrome.wait_text("in large products", "aside.side")
    for words in ("Code", "torch.ops.aten.", "Source", "tools/train_digits.py", "Reads"):
        if words not in visit.side():
            raise Failed(f"the panel lacks {words}: {visit.side()[:400]}")


def fused_when_compiled(visit):
    """Of a run node by node the page does not say that nodes were one kernel; of a compiled one it does."""
    chrome, server = visit.chrome, visit.server
    body = json.loads(model_file("digits_images.json"))
    for mode, words in (("eager", "fused with conv2d when compiled"), ("compiled", "fused with conv2d")):
        server.call("POST", "/v1/graphs/digits/run", json.dumps({**body, "mode": mode}).encode())
        visit.graph("digits", "?node=relu")
        chrome.wait(f"document.querySelector('.sum')?.textContent.endsWith('{words}')", words)


def open_a_module(visit):
    """A click on the triangle opens a module in its place; what is closed has no layout."""
    chrome = visit.chrome
    visit.graph("resnet")
    chrome.run("board.open = new Set(['']), board.update({fit: true})")
    before = chrome.run("board.scene.shapes.length")
    place = chrome.run("(() => { const s = board.scene.shapes.find((s) => s.kind === 'module'),"
                       " b = board.canvas.getBoundingClientRect(); return [b.left + (s.x + 12 - board.x) *"
                       " board.scale, b.top + (s.y + 20 - board.y) * board.scale]; })()")
    chrome.click_at(*place)
    chrome.wait(f"board.scene.shapes.length > {before}", "an open module")
    chrome.wait("location.hash.includes('open=')", "an address with the open module")
    after = chrome.run("board.scene.shapes.length")
    if after > 60:
        raise Failed(f"{after} shapes after one module was opened")
    visit.shot("module")
    address = chrome.run("location.hash")
    visit.go(address)
    chrome.wait(READY)
    expect(chrome.run("board.scene.shapes.length"), after, "the same address again")


def addresses(visit):
    """What is open, chosen and shown beside the drawing is in the address: it shows the same again."""
    chrome = visit.chrome
    visit.graph("resnet")
    counts = {}
    for key in ("*", "-"):
        chrome.key("o")
        chrome.wait(f"location.hash.includes('open={'*' if key == '*' else '-'}')", "an address")
        chrome.run("new Promise((done) => setTimeout(done, 150))")
        counts[key] = chrome.run("board.scene.shapes.length")
        visit.go(chrome.run("location.hash"))
        chrome.wait(READY)
        expect(chrome.run("board.scene.shapes.length"), counts[key], f"shapes of open={key}")
    if counts["*"] < 60 or counts["-"] > 9:
        raise Failed(f"shapes: {counts}")
    chrome.run("board.reveal(board.scene.shapes.find((s) => s.kind === 'module') &&"
               " `s ${board.scene.shapes.find((s) => s.kind === 'module').scope.id}`)")
    chrome.wait_text("Open or close", "aside.side")
    chrome.key("Enter")
    chrome.wait("board.scene.shapes.some((s) => s.kind === 'open')", "a module opened by its key")
    visit.go(chrome.run("location.hash"))
    chrome.wait(READY)
    chrome.wait_text("Open or close", "aside.side")
    chrome.key("p")
    chrome.wait("location.hash.includes('parameters=1')", "parameters in the address")
    visit.go(chrome.run("location.hash"))
    chrome.wait(READY)
    chrome.wait("board.parameters && !!document.querySelector('button[aria-pressed=true]')", "parameters")
    visit.graph("digits", "?node=relu&code=1&step=1")
    chrome.wait("document.querySelector('.line[aria-current]')?.textContent.includes('relu = ')", "the code")
    chrome.wait("document.querySelector('.scrub').innerText.includes('of ')", "the slider")
    visit.server.call("POST", "/v1/graphs/digits/run", model_file("digits_images.json"))
    visit.go("#/g/digits/time")
    chrome.wait("!!document.querySelector('tr.link button')", "runs")
    chrome.run("document.querySelector('tr.link button').focus()")
    chrome.key("Enter")
    chrome.wait("location.hash.includes('run=')", "a run chosen by its key")


def views_of_a_value(visit):
    """Outputs as bars, a picture, a heat map or a table."""
    chrome = visit.chrome
    visit.go("#/g/digits/run")
    chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
    chrome.click("button.first", "Run")
    for kind, found in (("table", "div.code"), ("picture", "canvas"), ("heat map", "canvas"),
                        ("bars", ".bars")):
        chrome.wait("!!document.querySelector('select[aria-label=\"shown as\"]')", "a choice")
        chrome.run("(() => { const s = document.querySelector('select[aria-label=\"shown as\"]');"
                   f" s.value = '{kind}'; s.dispatchEvent(new Event('change')); }})()")
        chrome.wait(f"!!document.querySelector('.tensor {found}')", kind)


def find_by_keys(visit):
    """Keys only: find a node, see its value, walk on, close."""
    chrome = visit.chrome
    visit.graph("digits")
    chrome.key("/")
    chrome.wait("document.activeElement.matches('input.find')", "the field")
    chrome.type("conv2d_1")
    chrome.wait("document.querySelectorAll('.found li').length === 1")
    chrome.key("Enter")
    chrome.wait_text("Conv2d 16→32, 3×3", "aside.side h2")
    chrome.wait("location.hash.includes('node=conv2d_1')")
    chrome.key("ArrowDown")
    chrome.wait_text("ReLU", "aside.side h2")
    chrome.key("Escape")
    chrome.wait("!location.hash.includes('node=')")
    chrome.key("?")
    chrome.wait("document.querySelector('dialog[open]')?.innerText.includes('heat on or off')")
    chrome.key("Escape")
    chrome.wait("!document.querySelector('dialog')")
    for key, title in (("r", "Run"), ("t", "Time"), ("c", "Change")):
        chrome.key(key)
        chrome.wait(f"document.querySelector('h1')?.textContent === '{title}'", title)


def value_of_a_node(visit):
    """A node's value is a picture with its statistics; the numbers are the run's."""
    chrome = visit.chrome
    visit.graph("digits", "?node=relu")
    chrome.click("aside.side button", "how its value")
    chrome.wait("!!document.querySelector('.tensor canvas')", "a picture")
    for words in ("mean", "zeros"):
        if words not in visit.side():
            raise Failed(f"the value lacks {words}")
    visit.shot("value")


def scrub_a_run(visit):
    """The slider walks through a run; at each node its value is shown, opened modules and all."""
    chrome = visit.chrome
    visit.graph("resnet")
    chrome.key("v")
    chrome.wait("document.querySelector('.scrub').innerText.includes('1 of ')", "the slider")
    chrome.wait_text("float32 [", ".tensor")
    seen = set()
    for _ in range(4):
        chrome.key(".")
        chrome.run("new Promise((done) => setTimeout(done, 150))")
        chrome.wait("document.querySelector('.tensor')?.innerText.includes('mean')", "a value")
        seen.add(chrome.run("location.hash.match(/node=([^&]*)/)[1]"))
    expect(len(seen), 4, f"nodes that were shown: {seen}")
    chrome.run("(() => { const s = document.querySelector('.scrub input'); s.value = 40;"
               " s.dispatchEvent(new Event('input')); })()")
    chrome.wait("document.querySelector('.scrub').innerText.includes('41 of ')", "a place far on")
    chrome.wait("document.querySelector('.scrub').innerText.endsWith(board.selectedShape()?.title)",
                "its node")
    chrome.wait("document.querySelector('.tensor')?.innerText.includes('mean')", "its value")
    visit.shot("scrub")


def run_the_example(visit):
    """The form runs the example; what is typed wrongly is said; a .npy file is taken."""
    chrome = visit.chrome
    visit.go("#/g/digits/run")
    chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
    chrome.click("button.first", "Run")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "ten bars")
    seven = os.path.join(visit.server.folder, "seven.npy")
    image = json.loads(model_file("digits_images.json"))["inputs"]["x"][7]
    with open(seven, "wb") as file:
        file.write(write_npy(tensor_of("float32", [image])))
    chrome.files("input[type=file]", [seven])
    chrome.wait("document.querySelector('textarea').value.includes('float32')", "the file")
    chrome.click("button.first", "Run")
    chrome.wait("document.querySelector('.bars .best')?.textContent === '7'", "a seven")
    visit.shot("run")
    chrome.run("document.querySelector('textarea').value = '[[1, 2'; "
               "document.querySelector('textarea').dispatchEvent(new Event('input'))")
    chrome.click("button.first", "Run")
    chrome.wait_text("no JSON", ".error")
    chrome.run("document.querySelector('textarea').value = '[1, 2, 3]'")
    chrome.click("button.first", "Run")
    chrome.wait_text("has shape [3]", ".error")


def run_within(visit):
    """A run within a tolerance says what was chosen, or why nothing was."""
    chrome = visit.chrome
    visit.go("#/g/digits/run")
    chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
    chrome.run("document.querySelector('select[aria-label=\"precision\"]').value = 'within 0.01'")
    chrome.click("button.first", "Run")
    chrome.wait_text("within 0.01: float32: fewer than two samples", ".page")
    graph = model_file("digits.pt2")
    images = json.loads(model_file("digits_images.json"))["inputs"]["x"]
    samples = {f"{i}.inputs.x": tensor_of("float32", [image]) for i, image in enumerate(images[:6])}
    body, kind = multipart([("graph", graph), ("samples", write_safetensors(samples))])
    visit.server.call("PUT", "/v1/graphs/digits", body, [("Content-Type", kind)])
    chrome.click("button.first", "Run")
    chrome.wait("/within 0.01: (error .* on 3 samples|float32: no node)/.test(document.body.innerText)",
                "what was chosen")


def files_as_inputs(visit):
    """An .npz, a .safetensors file and a picture are inputs; each gives the seven."""
    chrome, folder = visit.chrome, visit.server.folder
    image = json.loads(model_file("digits_images.json"))["inputs"]["x"][7]
    npy = write_npy(tensor_of("float32", [image]))
    with zipfile.ZipFile(os.path.join(folder, "seven.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy)
        archive.writestr("unused.npy", npy)
    with open(os.path.join(folder, "seven.safetensors"), "wb") as file:
        data = npy[-256:]
        head = json.dumps({"x": {"dtype": "F32", "shape": [1, 1, 8, 8], "data_offsets": [0, 256]}}).encode()
        file.write(len(head).to_bytes(8, "little") + head + data)
    picture = os.path.join(MODELS, "seven.png")
    broken = os.path.join(folder, "broken.npz")
    with open(broken, "wb") as file:
        file.write(b"PK")
    visit.go("#/g/digits/run")
    chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
    for path in (os.path.join(folder, "seven.npz"), os.path.join(folder, "seven.safetensors"), picture):
        chrome.run("document.querySelector('textarea').value = ''")
        chrome.drop("textarea", [path])
        chrome.wait("document.querySelector('textarea').value.includes('\"shape\":[1,1,8,8]')", path)
        if path == picture:
            continue
        chrome.click("button.first", "Run")
        chrome.wait("document.querySelector('.bars .best')?.textContent === '7'", f"a seven of {path}")
    chrome.files("input[type=file]", [broken])
    chrome.wait_text("no zip archive", ".error")
    settings = {"image": {"size": 8, "crop": 8, "mean": 0, "std": 0.0588235, "colour": "grey"}}
    visit.server.call("PATCH", "/v1/graphs/digits", json.dumps(settings).encode())
    visit.go("#/")
    visit.go("#/g/digits/run")
    chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
    chrome.files("input[type=file]", [picture])
    chrome.wait("document.querySelector('textarea').value.includes('the server scales it')", "the picture")
    chrome.click("button.first", "Run")
    chrome.wait("document.querySelector('.bars .best')?.textContent === '7'", "a seven of the picture")
    visit.server.call("PATCH", "/v1/graphs/digits", b'{"image": null}')


def halt_on_nan(visit):
    """A run that makes infinities ends at the node that made the first one."""
    chrome = visit.chrome
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "inverse", "target": "torch.reciprocal", "args": ["%x"]},
             {"op": "call_function", "name": "y", "target": "torch.relu", "args": ["%inverse"]},
             {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]
    body = json.dumps({"format": "fx/1", "nodes": nodes}).encode()
    expect(visit.server.call("PUT", "/v1/graphs/inverse", body).status, 201, "the upload")
    visit.server.call("POST", "/v1/graphs/inverse/run", b'{"inputs": {"x": [1.0]}}')
    visit.go("#/g/inverse/run")
    chrome.wait("!!document.querySelector('textarea')")
    chrome.run("document.querySelector('textarea').value = '[1.0, 0.0]'")
    chrome.click("input[type=checkbox]")
    chrome.click("button.first", "Run")
    chrome.wait_text("infinite", ".error")
    chrome.click("a", "show inverse")
    chrome.wait_text("inverse", "aside.side")
    visit.forget("/v1/graphs/inverse")


def see_time(visit):
    """Run again, the timeline and the statistics."""
    chrome = visit.chrome
    visit.go("#/g/resnet/time")
    chrome.click("button", "Run again")
    chrome.wait("document.querySelectorAll('.lane').length > 20", "the timeline")
    chrome.wait_text("By module", ".page")
    chrome.wait_text("99 %", ".page")
    report = visit.server.call("GET", "/v1/graphs/resnet/report?shapes=pixel_values:2,3,64,64").json()
    held = sum(one["bytes"] for one in report["memory"]["held"])
    expect(held, report["memory"]["peak_bytes"], "bytes that are held at the peak")
    chrome.wait("document.querySelector('svg.memory')?.getBoundingClientRect().height > 50", "memory")
    chrome.wait_text("At the peak live:", ".page")
    visit.shot("time")
    chrome.click(".lane", "Conv2d")
    chrome.wait(READY)
    chrome.wait("location.hash.includes('node=')", "the node of a lane")


def override(visit):
    """A constant in the place of a node, by pointing at it: tried, stored as a graph, and what it changed
    is shown. The address of the rules is one of a view."""
    chrome = visit.chrome
    visit.graph("digits", "?node=relu")
    chrome.run("document.querySelector('[aria-label=\"a constant\"]').value = '0.5'")
    chrome.click("aside.side button", "Make constant")
    chrome.click("aside.side a", "Try them")
    chrome.click("button.first", "Try them")
    rule = {"match": {"name": "relu"}, "patch": {"set": 0.5, "index": ["..."]}}
    check_trial(visit, {"overrides": [rule]}, ("+    clone_default[(Ellipsis,)] = value_of_rule",))
    visit.shot("change")
    expect(visit.server.call("GET", "/v1/graphs/digits-changed").status, 404, "a graph of a trial")
    run_curls(visit, ("dry_run", "/v1/compare"))
    chrome.click("button", "Store as a graph")
    chrome.wait_text("stored: digits-changed, version 1", ".page")
    expect(visit.server.call("GET", "/v1/graphs/digits-changed").status, 200, "the variant")
    visit.forget("/v1/graphs/digits-changed")
    visit.go(chrome.run("location.hash"))
    chrome.wait("document.querySelector('.rule')?.innerText.includes('relu')", "the rule of an address")


def write_steps(chrome, steps):
    chrome.run("document.querySelector('[aria-label=\"steps as JSON\"]').value = "
               + json.dumps(json.dumps(steps)))


def rewrite_and_roll_back(visit):
    """Steps make another graph, shown as a diff; stored as a version; the old one serves again."""
    chrome = visit.chrome
    visit.go("#/g/digits/change")
    chrome.wait("!!document.querySelector('[aria-label=\"steps as JSON\"]')")
    step = {"edit": "set_target", "node": "relu", "target": "torch.ops.aten.sigmoid.default"}
    write_steps(chrome, [step])
    chrome.click("button", "Try the steps")
    check_trial(visit, {"steps": [step]}, ("+    relu = torch.ops.aten.sigmoid.default",))
    visit.shot("rewrite-tried")
    expect(visit.server.call("GET", "/v1/graphs/digits").json()["versions"], [1], "a dry run")
    chrome.click("button", "Store as a version")
    chrome.wait_text("stored: digits, version 2", ".page")
    chrome.click("button", "Compare with version 1")
    chrome.wait_text("The results differ, at first at relu", ".page")
    chrome.wait_text("b: digits version 2, compiled, ", ".page")
    check_compared(visit)
    visit.go("#/g/digits/change")
    chrome.click("button", "Serve this one")
    chrome.wait_text("version 1 serves now", ".toast")
    expect(visit.server.call("GET", "/v1/graphs/digits").json()["default_version"], 1, "after rolling back")
    visit.forget("/v1/graphs/digits/versions/2")


def rewrite_by_pointing(visit):
    """Steps by pointing at nodes: a function behind one, another taken out; the diff shows both."""
    chrome = visit.chrome
    visit.graph("digits", "?node=relu")
    chrome.run("document.querySelector('aside.side form input').value = 'torch.ops.aten.sigmoid.default'")
    chrome.click("aside.side button.small", "Insert behind")
    chrome.wait_text("2 steps wait", "aside.side")
    chrome.run("board.show('dropout')")
    chrome.wait_text("Dropout", "aside.side h2")
    chrome.click("aside.side button.small", "Take out")
    chrome.wait_text("4 steps wait", "aside.side")
    chrome.click("aside.side a", "See what they make")
    chrome.click("button", "Try the steps")
    steps = chrome.run("import('/web/session.js').then((m) => m.current.now.steps)")
    lines = ("+    relu_then = torch.ops.aten.sigmoid.default(relu)", "-    dropout = ")
    check_trial(visit, {"steps": steps}, lines)
    visit.shot("rewrite")


def upload(visit):
    """A file is uploaded and drawn; a broken one and one with unknown operators say what to do."""
    chrome, folder = visit.chrome, visit.server.folder
    visit.go("#/")
    chrome.wait_text("digits", "table")
    chrome.drop(".drop", [os.path.join(MODELS, "dev_lenet.pt2")])
    chrome.wait("location.hash.includes('/g/dev_lenet/')", "the uploaded graph")
    chrome.wait(READY)
    broken = os.path.join(folder, "broken.pt2")
    with open(broken, "wb") as file:
        file.write(b"PK\3\4 and no more")
    visit.go("#/")
    chrome.wait_text("digits", "table")
    chrome.drop(".drop", [broken])
    chrome.wait("!!document.querySelector('.error')", "what is wrong with the file")
    odd = os.path.join(folder, "odd.json")
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "foo", "target": "torch.foo", "args": ["%x"]},
             {"op": "output", "name": "output", "target": "output", "args": ["%foo"]}]
    with open(odd, "w", encoding="utf-8") as file:
        json.dump({"format": "fx/1", "nodes": nodes}, file)
    chrome.files("input[type=file]", [odd])
    chrome.wait_text("torch.foo", ".error")
    chrome.click("button", "Show the graph")
    chrome.wait_text("torch.foo", "aside.side")
    chrome.wait("board.scene && board.scene.shapes.length === 3 && board.missing.has('foo')", "the drawing")
    red, green, blue = pixel(chrome, "foo", 7.5, 0.5)
    if red < 180 or max(green, blue) > 90:
        raise Failed(f"a missing operator is drawn in {red}, {green}, {blue}")
    visit.shot("refused")
    refused_archive(visit)


def refused_archive(visit):
    """An archive with an unknown operator, stored or packed, is drawn from the file."""
    chrome, folder = visit.chrome, visit.server.folder
    attack = ATTACK.replace('"', "'")
    for kind, target in ((zipfile.ZIP_STORED, "aten.foo"), (zipfile.ZIP_DEFLATED, "aten.foo"),
                         (zipfile.ZIP_STORED, attack)):
        path = os.path.join(folder, f"unknown{kind}{len(target)}.pt2")
        with zipfile.ZipFile(os.path.join(MODELS, "digits.pt2")) as old, \
                zipfile.ZipFile(path, "w", kind) as new:
            for name in old.namelist():
                data = old.read(name)
                if name.endswith("models/model.json"):
                    data = data.replace(b"aten.relu.default", f"{target}.default".encode())
                    data = data.replace(b"conv1", attack.encode()) if target == attack else data
                new.writestr(name, data)
        visit.go("#/")
        chrome.wait_text("digits", "table")
        chrome.files("input[type=file]", [path])
        chrome.wait_text(target, ".error")
        chrome.click("button", "Show the graph")
        chrome.wait("document.querySelector('aside.side') && board.scene && board.scene.shapes.length > 9",
                    "the drawing")
        if target == attack:
            continue
        expect(chrome.run("board.missing.size"), 3, "nodes that are missing")
        words = chrome.run("board.scene.shapes.map((s) => s.title + ' ' + s.shape).join('; ')")
        if "Conv2d 16→32, 3×3" not in words:
            raise Failed(f"the drawing has {words}")
    visit.shot("refused-archive")


def code_beside(visit):
    """The code beside the drawing, linked both ways."""
    chrome = visit.chrome
    visit.graph("digits", "?node=relu")
    chrome.key("k")
    chrome.wait("document.querySelector('.line[aria-current]')?.textContent.includes('relu = ')", "the line")
    chrome.click(".line.link", "max_pool2d = ")
    chrome.wait("board.selected === 'n max_pool2d'", "the node of the line")
    chrome.wait("document.querySelector('.line[aria-current]')?.textContent.includes('max_pool2d = ')")
    chrome.run("(() => { const s = document.querySelector('select[aria-label=\"form of the code\"]');"
               " s.value = 'tabular'; s.dispatchEvent(new Event('change')); })()")
    chrome.wait("/^call_function +max_pool2d /.test(document.querySelector('.line[aria-current]')"
                "?.textContent)", "the row of the table")
    chrome.click(".line.link", "call_function  flatten")
    chrome.wait("board.selected === 'n flatten'", "the node of the row")
    chrome.click(".line.link", "call_function  max_pool2d")
    chrome.wait("board.selected === 'n max_pool2d'", "the node of the other row")
    chrome.run("sessionStorage.removeItem('fxserve-code')")
    chrome.key("k")
    chrome.wait_text("MaxPool2d 2×2", "aside.side h2")


def pan(visit):
    """A picture that was moved is the one that is drawn anew; a node that can be seen stays where it is
    when it is chosen."""
    chrome = visit.chrome
    visit.graph("resnet")
    chrome.run("board.heat = {...board.heat, nodes: new Map(board.graph.nodes.map((n, i) => [n.name, {share:"
               " i % 7 / 7, text: '12 µs'}]))}, board.fused = new Map(board.graph.nodes.map((n, i) =>"
               " [n.name, i >> 1]))")
    with open(os.path.join(HERE, "page_panned.js"), encoding="utf-8") as file:
        expect(chrome.run(file.read()), [], "pictures that were moved")
    chrome.run("board.fit(true)")
    before = chrome.run("[board.x, board.y]")
    x, y = chrome.place(".board > canvas")
    chrome.drag([(x - 300, y + 10 * k) for k in range(6)])
    chrome.wait(f"board.x === {before[0]} && board.y < {before[1]}", "a dragged picture")
    seen = chrome.run("(() => { const s = board.scene.shapes.filter((s) => s.node)[2];"
                      " board.scale = 0.6; board.x = s.x - 300; board.y = s.y - 300;"
                      " const at = [board.x, board.y]; board.reveal(`n ${s.node.name}`);"
                      " return [at, [board.x, board.y]]; })()")
    expect(seen[0], seen[1], "the place of the picture")


def export(visit):
    """SVG and PNG of the whole drawing."""
    chrome = visit.chrome
    visit.graph("resnet")
    svg = chrome.run("board.svg().text()")
    for words in ("<svg", "pixel_values", "</svg>"):
        if words not in svg:
            raise Failed(f"the SVG lacks {words}")
    kind, size = chrome.run("board.png().then((b) => [b.type, b.size])")
    if kind != "image/png" or size < 20000:
        raise Failed(f"the picture is {kind} of {size} bytes")


def dark_and_large(visit):
    """The dark theme is kept; at 200 % and on a small window nothing is cut off."""
    chrome = visit.chrome
    visit.go("#/")
    chrome.run("document.body.focus()")
    chrome.key("d")
    theme = chrome.run("document.documentElement.dataset.theme")
    visit.graph("resnet")
    expect(chrome.run("document.documentElement.dataset.theme"), theme, "the theme on the next page")
    visit.shot("dark")
    chrome.key("d")
    try:
        for size in ((700, 430, 2), (390, 760, 1)):
            chrome.size(*size)
            for view in ("#/", "#/g/digits/graph?node=relu", "#/g/digits/run", "#/g/digits/time",
                         "#/g/digits/change"):
                visit.go(view)
                chrome.wait("document.querySelector('main').textContent.length > 80", view)
                wide = chrome.run("document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    raise Failed(f"{view} is {wide} pixels wider than its window of {size}")
                low, high = chrome.run("(() => { const b = (document.querySelector('.crumb') ||"
                                       " document.querySelector('.brand')).getBoundingClientRect();"
                                       " return [b.width, b.height]; })()")
                if low < 20 or high < 10:
                    raise Failed(f"{view} does not name its graph in a window of {size}")
                visit.shot(f"narrow-{size[0]}-{view.split('/')[-1].split('?')[0] or 'start'}")
    finally:
        chrome.size(1400, 860)


def as_curl(visit):
    """What the page did is shown as curl commands, which do the same."""
    chrome = visit.chrome
    visit.go("#/g/digits/run")
    chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')")
    chrome.click("button.first", "Run")
    chrome.wait("!!document.querySelector('.bars')")
    run_curls(visit, ("/text?form=json'", "/run -d", "/example"))
    for address, words in (("#/", ("/v1/graphs?limit=1000'", "curl -N")),
                           ("#/g/digits/graph?node=relu", ("/text?form=json'", "/report")),
                           ("#/g/digits/time", ("/profile?by=module&depth=1'", "/v1/profiles?slowest=200'")),
                           ("#/g/digits/change", ("/versions",))):
        visit.go(address)
        chrome.wait("document.querySelector('main').textContent.length > 80", address)
        run_curls(visit, words)


def run_curls(visit, words):
    """The commands that the dialog shows have these words, and work."""
    chrome = visit.chrome
    for word in words:
        chrome.click("button", "curl")
        texts = chrome.run("[...document.querySelectorAll('dialog pre')].map((e) => e.textContent)")
        text = next((one for one in texts if word in one), None)
        if text is None:
            raise Failed(f"no command has {word!r}: {texts}")
        chrome.key("Escape")
        if "curl -N" in text or text.endswith("…"):  # one that goes on; one of which "copy" copies more
            continue
        done = subprocess.run(["bash", "-c", text.replace("curl", "curl -f", 1)], capture_output=True,
                              check=False, timeout=60)
        if done.returncode != 0 or done.stdout[:1] not in (b"{", b"["):
            raise Failed(f"{text[:120]}: {done.stdout[:200]} {done.stderr[:300]}")


def hostile_texts(visit):
    """Texts of a graph stay texts, wherever they may stand."""
    chrome = visit.chrome
    stack = {ATTACK: [ATTACK, ATTACK], f"{ATTACK}2": [f"{ATTACK}.{ATTACK}", ATTACK]}
    meta = {"nn_module_stack": stack, "stack_trace": f'File "{ATTACK}", line 1, in {ATTACK}\n    {ATTACK}'}
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "y", "target": "torch.relu", "args": ["%x"], "meta": meta},
             {"op": "call_function", "name": "z", "target": "torch.neg", "args": ["%y"], "meta": meta},
             {"op": "output", "name": "output", "target": "output", "args": ["%z"]}]
    body = json.dumps({"format": "fx/1", "nodes": nodes})
    reply = visit.server.call("PUT", "/v1/graphs/hostile", body.encode())
    expect(reply.status, 201, f"the upload: {reply.body}")
    run = json.dumps({"inputs": {"x": [1.0]}}).encode()
    visit.server.call("POST", "/v1/graphs/hostile/run", run)
    for address in ("graph", "graph?node=y", f"graph?node={ATTACK}", "run", "time", "change"):
        visit.go(f"#/g/hostile/{address}")
        chrome.wait("document.querySelector('main').textContent.length > 20")
        if address.startswith("graph"):
            chrome.wait(READY)
            chrome.run("board.open = new Set(board.graph.scopes.keys()), board.update()")
            chrome.run("board.svg().text().then((t) => new DOMParser().parseFromString(t, 'text/html'))"
                       ".then((d) => { if (d.querySelector('script, img')) throw new Error('markup'); })")
    check_uploaded_texts(visit)
    check_drawn_texts(visit)
    check_hostile_reports(visit)


def side_by_side(visit):
    """Two modes beside each other: times of both and the largest error of each node."""
    chrome = visit.chrome
    visit.go("#/g/digits/time")
    chrome.wait("!!document.querySelector('svg.memory') || document.body.innerText.includes('not run yet')")
    chrome.click("button", "Compare")
    chrome.wait_text("The results are close", ".page")
    row = chrome.run("[...document.querySelectorAll('table.values tbody tr')].map((e) => e.innerText)"
                     ".find((t) => t.startsWith('conv2d_1'))")
    if "–" in row or "of " not in row or "close" not in row:
        raise Failed(f"a row of the table: {row}")
    chrome.run("document.querySelector('table.values').scrollIntoView()")
    visit.shot("side-by-side")
    choose = ("(() => {{ const s = document.querySelector('select[aria-label=\"{}\"]'), o = [...s.options]"
              ".find((o) => o.text.includes({})); s.value = o.value; return o.text; }})()")
    chrome.run(choose.format("side b", json.dumps("int8")))
    chrome.click("button", "Compare")
    chrome.wait_text("The results differ", ".page")
    chrome.wait_text("compiled, int8, ", ".page")
    chrome.wait("document.querySelector('select[aria-label=\"run a\"]')?.options.length > 2", "past runs")
    chrome.click("button", "Compare their times")
    chrome.wait_text("b: run ", ".page")
    cells = chrome.run("[...document.querySelectorAll('table.values tbody tr')].map((e) => e.innerText)")
    if len(cells) < 9 or any("–" in row for row in cells if row.startswith("conv2d")):
        raise Failed(f"times of two runs: {cells}")


def live_events(visit):
    """Runs and uploads of others appear without a reload; little is kept; the stream comes back."""
    chrome, server = visit.chrome, visit.server
    visit.go("#/")
    chrome.wait("document.querySelector('.live')?.parentElement.innerText.match(/Nothing|µs/)", "a stream")
    body = model_file("digits_images.json")
    for _ in range(40):
        server.call("POST", "/v1/graphs/digits/run", body)
    chrome.wait("[...document.querySelectorAll('.live li')].some((e) => e.innerText.includes('µs'))", "a run")
    rows = "document.querySelectorAll('.live li').length"
    chrome.wait(f"{rows} >= 12", "12 rows")
    expect(chrome.run(rows), 12, "rows of 40 runs")
    server.call("PUT", "/v1/graphs/newcomer", model_file("digits.pt2"))
    chrome.wait_text("newcomer", "tbody")
    chrome.wait_text("PUT /v1/graphs/{name}", ".live")
    visit.shot("live")
    server.call("DELETE", "/v1/graphs/newcomer")
    chrome.wait("!document.querySelector('tbody').innerText.includes('newcomer')", "its end")
    found = chrome.run(
        "import('/web/events.js').then(({eventsOf}) => [eventsOf('event: run\\ndata: {\"a\": 1}"
        "\\n\\nevent: r'), eventsOf('data: x\\n\\n' + 'y'.repeat(1e5))])")
    whole = [{"kind": "run", "data": {"a": 1}}]
    expect(found, [{"found": whole, "rest": "event: r"}, {"found": [], "rest": ""}], "events of a text")
    chrome.run(
        "window.asked = 0, window.real = fetch, window.fetch = (url, o) => String(url).includes('events')"
        " && asked++ < 2 ? Promise.resolve(new Response('event: lost\\ndata: {}\\n\\n')) : real(url, o), 0")
    chrome.key("t")
    chrome.run("location.hash = '#/g/digits/time'")
    chrome.wait("asked >= 3", "a stream that begins again", 8)
    chrome.run("window.fetch = window.real, 0")
    many_pages(visit)


def heat_of_others(visit):
    """A run that somebody else asks for colours the drawing."""
    chrome, server = visit.chrome, visit.server
    server.call("PUT", "/v1/graphs/shared", model_file("dev_lenet.pt2"))
    visit.graph("shared", "?node=output")
    expect(chrome.run("board.heat.nodes.size"), 0, "heat before the first run")
    body = server.call("GET", "/v1/graphs/shared/example").body

    for _ in range(50):
        server.call("POST", "/v1/graphs/shared/run", body)
        if chrome.run("new Promise((done) => setTimeout(() => done(board.heat.nodes.size > 3), 300))"):
            break
    else:
        raise Failed("the drawing has no heat")
    visit.forget("/v1/graphs/shared")


def many_pages(visit):
    """Pages that nobody sees hold no connection: after a dozen of them the next one works."""
    for _ in range(12):
        visit.go("#/g/digits/time")
        visit.chrome.wait_text("All runs", ".page")
    visit.chrome.wait_text("99 %", ".page")


def open_report(visit, name, page):
    """A report without a server, as a file in a browser."""
    path = os.path.join(visit.server.folder, f"{name}.html")
    with open(path, "wb") as file:
        file.write(page)
    visit.chrome.open(f"file://{path}")
    visit.chrome.wait("!!document.querySelector('h1')", f"the report {name}")
    visit.shot(f"report-{name}")


def ask_report(visit, path):
    reply = visit.server.call("GET", path)
    headers = dict(reply.headers)
    expect(reply.status, 200, f"{path}: {reply.body[:200]}")
    if not headers["Content-Disposition"].startswith("attachment; filename="):
        raise Failed(f"a report is {headers['Content-Disposition']}")
    return reply.body


def reports(visit):
    """Reports of a run, of statistics and of a comparison are files that need no server."""
    chrome, server = visit.chrome, visit.server
    server.call("POST", "/v1/graphs/digits/run", model_file("digits_images.json"))
    run = next(one for one in server.call("GET", "/v1/profiles").json()["profiles"]
               if one["graph"] == "digits")
    open_report(visit, "run", ask_report(visit, f"/v1/profiles/{run['id']}?form=html"))
    rows = len(server.call("GET", f"/v1/profiles/{run['id']}").json()["nodes"])
    expect(chrome.run("document.querySelectorAll('.lane').length"), rows, "rows of the timeline")
    if chrome.run("document.querySelectorAll('.flame').length") < 5:
        raise Failed("the report has no modules")
    if chrome.run("getComputedStyle(document.querySelector('.card')).borderTopWidth") != "1px":
        raise Failed("the report has no style")
    open_report(visit, "statistics", ask_report(visit, "/v1/graphs/digits/profile?form=html"))
    chrome.wait_text("99 %", ".card")
    path = os.path.join(server.folder, "compared.html")
    done = subprocess.run([server.binary, "compare", "digits", "--html", "-o", path, "--url", server.url],
                          capture_output=True, check=False)
    expect(done.returncode, 0, f"compare --html: {done.stderr}")
    with open(path, "rb") as file:
        open_report(visit, "comparison", file.read())
    chrome.wait_text("The results are close", ".page")
    if chrome.run("document.querySelectorAll('table.values tr').length") < 12:
        raise Failed("the comparison lacks nodes")


def check_hostile_reports(visit):
    """Texts of a graph in reports: none ends the block of data."""
    server = visit.server
    for one in server.call("GET", "/v1/profiles").json()["profiles"]:
        if one["graph"] == "hostile":
            page = ask_report(visit, f"/v1/profiles/{one['id']}?form=html")
            expect(page.count(b"</script>"), 2, "ends of scripts in a report")
            open_report(visit, "hostile", page)
            check_markup(visit)
    open_report(visit, "hostile", ask_report(visit, "/v1/graphs/hostile/profile?form=html"))
    check_markup(visit)


def check_uploaded_texts(visit):
    """Graphs that the server takes, with scripts of many kinds in every text that is free."""
    chrome, generator = visit.chrome, random.Random(11)
    texts = [ATTACK, "'\"><svg onload=\"document.title='owned'\">",
             "</script><script>document.title='owned'</script>",
             "{{constructor.constructor('document.title=1')()}}",
             "<a href=javascript:document.title='owned'>x</a>",
             "--></title></textarea><iframe srcdoc=\"<script>parent.document.title='owned'</script>\">",
             "&lt;img src=x onerror=document.title='owned'&gt;", "%3Cimg%20src=x%3E", "\u202e<b>"]
    for _ in range(4):
        def pick():
            return generator.choice(texts)
        nodes, before = [{"op": "placeholder", "name": "x", "target": "x"}], "x"
        for k in range(12):
            stack = {pick(): [f"{pick()}{k // 4}", pick()],
                     f"{pick()}{k}": [f"{pick()}.{pick()}{k // 2}", pick()]}
            trace = f'File "{pick()}", line 1, in {pick()}\n    {pick()}'
            nodes.append({"op": "call_function", "name": f"n{k}", "target": "torch.neg",
                          "args": [f"%{before}"], "meta": {"nn_module_stack": stack, "stack_trace": trace}})
            before = f"n{k}"
        nodes.append({"op": "output", "name": "output", "target": "output", "args": [f"%{before}"]})
        body = json.dumps({"format": "fx/1", "nodes": nodes}).encode()
        reply = visit.server.call("PUT", "/v1/graphs/hostile", body)
        expect(reply.status, 201, f"the upload: {reply.body}")
        visit.server.call("POST", "/v1/graphs/hostile/run", b'{"inputs": {"x": [1.0]}}')
        visit.graph("hostile", "?node=n5&open=*")
        chrome.wait_text("neg", "aside.side")
        chrome.key("/")
        chrome.wait("document.querySelectorAll('.found li').length > 5", "nodes that are found")
        check_markup(visit)
        chrome.key("Escape")
        visit.go("#/g/hostile/time")
        chrome.wait("document.querySelectorAll('.lane').length > 5", "the timeline")
        check_markup(visit)


def check_drawn_texts(visit):
    """Dropped files of random texts, which the server never sees."""
    chrome, generator = visit.chrome, random.Random(7)
    values = [ATTACK, "%" + ATTACK, "__proto__", "constructor", "", "%%", "\u202e", 7, None, True, [ATTACK],
              {"a": ATTACK}, "javascript:alert(1)", "x" * 5000, {"__proto__": {"x": 1}}, -1e308]
    drawn = "import('/web/refused.js').then((m) => m.showRefused('m', {}, new Error({})))"
    for _ in range(60):
        nodes = [{key: generator.choice(values) for key in ("op", "name", "target", "args", "kwargs", "meta")}
                 for _ in range(12)]
        for node in nodes[::2]:
            node["op"] = "call_function"
            node["meta"] = {"nn_module_stack": {ATTACK: generator.choice(values)},
                            "stack_trace": generator.choice(values),
                            "shape": generator.choice(values), "dtype": generator.choice(values)}
            node["args"] = [f"%{generator.choice(nodes)['name']}"]
        text = json.dumps({"nodes": nodes, "signature": {"inputs": generator.choice(values)},
                           "class_name": generator.choice(values)})
        chrome.run(drawn.format(text, json.dumps(ATTACK)))
    check_markup(visit)


def check_markup(visit):
    own = "[src=\"web/main.js\"], [src=\"web/early.js\"], body > #data, body > #data + script"
    found = visit.chrome.run(f"[...document.querySelectorAll('script:not({own}), img, iframe,"
                             " object, [onerror], [onclick]')].map((e) => e.outerHTML)")
    expect(found, [], "elements made of texts")
    if visit.chrome.run("document.title") == "owned":
        raise Failed("a script of a text ran")


def layouts(visit):
    """Properties of layouts of random graphs: no overlaps, edges go down, one picture each time, few
    crossings where none are needed."""
    visit.graph("digits")
    with open(os.path.join(HERE, "page_layouts.js"), encoding="utf-8") as file:
        found = visit.chrome.run(file.read())
    expect(found, [], "properties of layouts")


def barriers(visit):
    """axe finds nothing serious in any view, light and dark."""
    chrome, found = visit.chrome, []
    views = ["#/", "#/g/digits/graph?node=relu", "#/g/resnet/graph", "#/g/digits/run", "#/g/digits/time",
             "#/g/digits/change"]
    with open(visit.axe, encoding="utf-8") as file:
        axe = file.read()
    for theme in ("light", "dark"):
        for view in views:
            visit.go(view)
            chrome.run(f"localStorage.setItem('fxserve-theme', '{theme}')")
            visit.go(view)
            chrome.wait("document.querySelector('main').textContent.length > 80", view)
            if "graph" in view:
                chrome.wait(READY)
            if view.endswith("run"):
                chrome.wait("document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
                chrome.click("button.first", "Run")
                chrome.wait("!!document.querySelector('.bars')", "a result")
            chrome.run("new Promise((done) => setTimeout(done, 300))")
            chrome.run(f"{axe}; 0")
            wrong = chrome.run("axe.run().then((r) => r.violations.filter((v) => ['serious', 'critical']"
                               ".includes(v.impact)).map((v) => v.id + ': ' + v.nodes.slice(0, 3)"
                               ".map((n) => n.html.slice(0, 120) + ' ' + n.any.map((a) => a.message))"
                               ".join(' | ')))")
            found += [f"{theme} {view}: {text}" for text in wrong]
    chrome.run("localStorage.removeItem('fxserve-theme')")
    if found:
        raise Failed(f"{len(found)} findings\n" + "\n".join(found))


def ten_thousand(visit):
    """10,000 nodes in 500 modules: only what is open has shapes, and the layout takes a moment."""
    chrome = visit.chrome
    nodes, before = [{"op": "placeholder", "name": "x", "target": "x"}], "x"
    for i in range(10000):
        path = f"stage{i // 1000}.block{i // 20}"
        stack = {"s": [path.split(".", maxsplit=1)[0], "Stage"], f"b{i // 20}": [path, "Block"]}
        nodes.append({"op": "call_function", "name": f"n{i}", "target": "torch.relu", "args": [f"%{before}"],
                      "meta": {"nn_module_stack": {f"{k}{i // 1000}": v for k, v in stack.items()}}})
        before = f"n{i}"
    nodes.append({"op": "output", "name": "output", "target": "output", "args": [f"%{before}"]})
    body = json.dumps({"format": "fx/1", "nodes": nodes}).encode()
    expect(visit.server.call("PUT", "/v1/graphs/large", body).status, 201, "the upload")
    visit.graph("large")
    shapes, milliseconds = chrome.run("[board.scene.shapes.length, board.layoutMs]")
    if shapes > 200:
        raise Failed(f"{shapes} shapes at first")
    first = chrome.run("performance.now()")
    chrome.run("board.toggle([...board.graph.scopes.values()].find((s) => s.depth === 1)).then(() => 0)")
    opened = chrome.run("performance.now()") - first
    picture = chrome.run("performance.getEntriesByName('picture').at(-1).startTime")
    print(f"10,000 nodes: the first picture {picture:.0f} ms after the address was entered, {shapes} shapes "
          f"laid out in {milliseconds:.0f} ms, a module opened in {opened:.0f} ms")
    before = visit.heap()
    for _ in range(8):
        chrome.run("(async () => { for (const s of [...board.graph.scopes.values()].filter((s) => s.depth))"
                   " board.open.add(s.id); await board.update(); board.open = new Set(['']);"
                   " await board.update(); })()")
    grown = visit.heap() - before
    print(f"all opened and closed 8 times: the page's memory grew by {grown / 2**20:.1f} MiB")
    if grown > 64 * 2**20:
        raise Failed(f"the page keeps {grown} bytes of what it closed")
    chrome.run("board.open = new Set(board.graph.scopes.keys()), board.update().then(() => board.fit())")
    shapes, milliseconds = chrome.run("[board.scene.shapes.length, board.layoutMs]")
    print(f"all open: {shapes} shapes in {milliseconds:.0f} ms")
    check_frames(visit)
    for node in nodes:
        node.pop("meta", None)
    body = json.dumps({"format": "fx/1", "nodes": nodes}).encode()
    visit.server.call("PUT", "/v1/graphs/large", body)
    visit.graph("large")
    shapes, milliseconds = chrome.run("[board.scene.shapes.length, board.layoutMs]")
    picture = chrome.run("performance.getEntriesByName('picture').at(-1).startTime")
    print(f"10,000 nodes without modules: the first picture after {picture:.0f} ms, {shapes} shapes laid "
          f"out in {milliseconds:.0f} ms")
    if shapes > 200:
        raise Failed(f"{shapes} shapes of a graph without modules")
    visit.forget("/v1/graphs/large")


JOURNEYS = [
    start_on_digits, draw_a_digit, find_the_slow_node, fused_when_compiled, open_a_module, addresses,
    find_by_keys, by_keyboard, focus_stays, value_of_a_node, views_of_a_value, heat_of_others, heat_by_choice,
    heat_of_modules, alone_words, nan_is_magenta, scrub_a_run, run_the_example, run_within, files_as_inputs,
    halt_on_nan, see_time, earlier_graph,
    override, patch_by_pointing, rewrite_and_roll_back, rewrite_by_pointing, code_beside, upload,
    upload_progress, export, reports, live_events, side_by_side, pan, dark_and_large, as_curl, layouts,
    hostile_texts, ten_thousand
]


def tokens(visit):
    """With tokens the page asks; a wrong one is said; the right one is kept for the tab, and no address
    has it; without the scope to write the buttons say so."""
    chrome = visit.chrome
    visit.go("#/")
    chrome.wait("!!document.querySelector('dialog input[type=password]')", "the question")
    chrome.type("a-wrong-token-0123456789")
    chrome.key("Enter")
    chrome.wait_text("does not know this token", "dialog")
    chrome.type(TOKEN)
    chrome.key("Enter")
    chrome.wait_text("digits", "table")
    chrome.wait_text("needs the scope admin", ".page")
    chrome.open(visit.server.url + "/#/g/digits/change")
    chrome.wait_text("version 1", ".page")
    if any(TOKEN in url for url in chrome.requests):
        raise Failed("an address has the token")
    for words in ("Store as a version", "Store as a graph"):
        chrome.wait("[...document.querySelectorAll('button:disabled')].some((e) => e.textContent.includes("
                    f"'{words} needs the scope write'))", f"the words of {words}")
    if chrome.run("[...document.querySelectorAll('button:disabled')].some((e) => e.innerText.includes("
                  "'Try'))"):
        raise Failed("a run is not offered to a token that may run")
    chrome.open(visit.server.url + "/#/")
    chrome.wait_text("needs the scope write", ".drop")


def attempt(tally, visit, journey, allowed=()):
    """One journey, and what must hold after each."""
    chrome, name = visit.chrome, journey.__name__.replace("_", " ")
    try:
        chrome.open("about:blank")  # what the page before still waits for is not this journey's
        chrome.problems.clear()
        chrome.requests.clear()
        journey(visit)
        wrong = [text for text in chrome.problems if not any(word in text for word in allowed)]
        expect(wrong, [], "errors of the page")
        own = (visit.server.url, "about:", "data:", "blob:", f"file://{visit.server.folder}")
        strange = [url for url in chrome.requests if not url.startswith(own)]
        expect(strange, [], "requests to others")
        check_markup(visit)
        tally.check(name, "")
    except Failed as error:
        visit.shot(f"failed-{journey.__name__}")
        tally.check(name, str(error)[:4000])


def check_size(tally, server):
    total = 0
    for name in sorted(os.listdir(os.path.join(ROOT, "web"))):
        path = "/" if name == "index.html" else f"/web/{name}"
        accept = [("Accept", "text/html"), ("Accept-Encoding", "gzip")]
        total += len(server.call("GET", path, headers=accept).body)
    print(f"the page's files: {total} bytes compressed")
    tally.check("size", "" if 20000 < total <= COMPRESSED else f"{total} bytes, at most {COMPRESSED}")


def with_tokens(binary, tally, chrome, shots):
    server = Server(binary, ["--data", "none"])
    path = os.path.join(server.folder, "tokens")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{TOKEN} read,run\n{TOKEN}w admin\n")
    server.flags += ["--token-file", path]
    try:
        server.start()
        admin = [("Authorization", f"Bearer {TOKEN}w")]
        server.call("PUT", "/v1/graphs/digits", model_file("digits.pt2"), admin)
        attempt(tally, Visit(chrome, server, shots), tokens, ("401", "403"))
        tally.check("the second server's end", "; ".join(server.stop()))
    finally:
        server.clean_up()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--shots", help="a folder for screenshots")
    parser.add_argument("--axe", help="axe.js, which looks for barriers")
    parser.add_argument("--only", default="", help="journeys with this in their name")
    parser.add_argument("--figures", action="store_true", help="only those of 10,000 nodes, of more frames")
    options, tally = parser.parse_args(), Tally()
    if shutil.which("chromium") is None:
        tally.check("a browser", "chromium is not installed")
        return tally.end()
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    server = Server(options.binary, ["--data", "none"])
    chrome = None
    try:
        server.start()
        for name in ("digits", "resnet"):
            file = {"resnet": "dev_resnet_hf"}.get(name, name)
            server.call("PUT", f"/v1/graphs/{name}", model_file(f"{file}.pt2"))
        check_size(tally, server)
        chrome = Chrome()
        visit = Visit(chrome, server, options.shots, options.axe)
        journeys = JOURNEYS + ([barriers] if options.axe else [])
        if options.figures:
            journeys, visit.frames = [ten_thousand], 600
        for journey in (one for one in journeys if options.only in one.__name__):
            # a refusal that a journey provokes is told by the browser, too
            provoked = journey in (run_the_example, halt_on_nan, earlier_graph, upload, upload_progress,
                                   hostile_texts, ten_thousand)
            attempt(tally, visit, journey, ("400", "404", "409", "415", "422") if provoked else ())
        chrome.open("about:blank")  # a page follows its server's events, and misses it
        tally.check("the server's end", "; ".join(server.stop()))
        if options.only in "tokens" and not options.figures:
            with_tokens(options.binary, tally, chrome, options.shots)
    except (Failed, OSError) as error:
        tally.check("the visit", str(error)[:1500])
    finally:
        if chrome is not None:
            chrome.close()
        server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
