# SPDX-License-Identifier: Apache-2.0
"""Journeys through the page (page.py) that hold what it shows against what the server says."""
import json
import os
import re

from page_visit import choose, expect, pixel
from service import Failed, model_file

UNITS = {"": 1, "B": 1, "k": 1e3, "M": 1e6, "G": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
WHITE = [255, 255, 255]


def number_of(text):
    """Of "1.2 MiB", "±0.0024", "164.9 k"."""
    found = re.fullmatch(r"±?([\d.e+-]+)\s*(\w*)", text)
    if not found:
        raise Failed(f"{text!r} is no number")
    return float(found[1]) * UNITS[found[2]]


def near(found, wanted, what):
    """As texts round it."""
    if abs(found - wanted) > 0.06 * abs(wanted):
        raise Failed(f"{what}: the page says {found}, the server {wanted}")


def compared(server, body):
    return server.call("POST", "/v1/compare", json.dumps(body).encode()).json()


def heat_values(visit, kind):
    """What the server says of each node, of the inputs that the page has."""
    server = visit.server
    inputs = visit.chrome.run("import('/web/session.js').then((m) => m.current.now.inputs)")
    if kind.startswith("error"):
        how = kind.split("-")[1]
        b = {"graph": "digits", "mode": "compiled", **({} if how == "compiled" else {"precision": how})}
        reply = compared(server, {"a": {"graph": "digits", "mode": "eager"}, "b": b, "nodes": True,
                                  "inputs": inputs})
        return {row["a"]: row["max_abs"] for row in reply["nodes"] if row.get("a") and "max_abs" in row}
    run = next(one for one in server.call("GET", "/v1/profiles").json()["profiles"]
               if one["graph"] == "digits")
    sizes = re.search(r"x: float32\[([\d, ]+)\]", run["signature"])[1].replace(" ", "")
    rows = server.call("GET", f"/v1/graphs/digits/report?shapes=x:{sizes}").json()["nodes"]
    member = {"memory": "bytes", "operations": "flops"}[kind]
    return {row["node"]: row[member] for row in rows if row[member] > 0}


RACE = """import('/web/session.js').then(async (m) => {
    const s = m.current.now, real = window.fetch;
    let runs = 0;
    window.fetch = async (url, how) => {
        const reply = await real(url, how);
        if (String(url).includes('PATH') && runs++ === 0) await m.run(s, {inputs: s.inputs});
        return reply;
    };
    s.profile = s.report = null;
    await m.CALL(s);
    window.fetch = real;
    return FOUND;
})"""


def race(visit, path, call, found):
    """What is found after a run came in between a call of the page and its reply."""
    return visit.chrome.run(RACE.replace("PATH", path).replace("CALL", call).replace("FOUND", found))


def newer_run_stays(visit):
    """A run that ends while the one before it is being read is the one that colours the drawing."""
    visit.server.call("POST", "/v1/graphs/digits/run", model_file("digits_images.json"))
    expect(race(visit, "/v1/profiles/", "lastRun", "s.profile.id === s.result.profile.id"), True,
           "whether the newer run stays")
    report = visit.server.call("GET", "/v1/graphs/digits/report?shapes=x:1,1,8,8").json()["nodes"]
    expect(race(visit, "/report", "reportOf", "s.report.byNode.get('div').bytes"),
           next(row["bytes"] for row in report if row["node"] == "div"), "a report of the newer run")


def earlier_graph(visit):
    """Runs of a deleted graph are not those of its successor of the same name and version."""
    chrome, server = visit.chrome, visit.server
    server.call("PUT", "/v1/graphs/again", model_file("relu_neg_abs.fx.json"))
    server.call("POST", "/v1/graphs/again/run", b'{"inputs": {"x": [1.0]}}')
    server.call("DELETE", "/v1/graphs/again")
    server.call("PUT", "/v1/graphs/again", model_file("neg_sigmoid.fx.json"))
    visit.graph("again")
    expect(chrome.run("import('/web/session.js').then(async (m) => {"
                      " await m.lastRun(m.current.now); return m.current.now.profile; })"), None,
           "the last run of a graph that has not run")
    visit.go("#/g/again/time")
    chrome.wait_text("none", ".page")
    visit.forget("/v1/graphs/again")


def warmth_of(colour):
    """Colours of heat go from white through yellow to red."""
    return 510 - colour[1] - colour[2]


def heat_by_choice(visit):
    """Each kind of heat shows what the server says: numbers on nodes, and the larger one is hotter."""
    chrome = visit.chrome
    visit.graph("digits")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "the first run")
    chrome.wait("board.heat.nodes.size > 5", "the heat of its time")
    newer_run_stays(visit)
    expect(chrome.run("document.documentElement.dataset.theme"), "light", "the theme")
    chrome.run("board.fit()")
    for kind, words in (("memory", "of the bytes"), ("operations", "of the operations"),
                        ("error-compiled", "largest error"), ("error-bf16", "largest error"),
                        ("error-int8", "largest error")):
        chrome.run("board.heat.words = ''")
        choose(chrome, "heat", kind)
        chrome.wait(f"board.heat.words.includes('{words}')", f"heat by {kind}")
        chrome.wait_text(words, ".legend")
        expect(chrome.run("location.hash.match(/heat=([^&]*)/)[1]"), kind, "the address")
        wanted, texts = heat_values(visit, kind), dict(chrome.run(
            "[...board.heat.nodes].map(([name, warmth]) => [name, warmth.text])"))
        expect(sorted(texts), sorted(wanted), f"nodes with heat by {kind}")
        for name, text in texts.items():
            near(number_of(text), wanted[name], f"{kind} of {name}")
        drawn = chrome.run("board.scene.shapes.filter((s) => s.node).map((s) => s.node.name)")
        rows = sorted((wanted[name], name, warmth_of(pixel(chrome, name, 30, 5)))
                      for name in drawn if name in wanted)
        colder = [(a, b) for a, b in zip(rows, rows[1:]) if a[2] > b[2]]
        expect(colder, [], f"larger {kind} in a colder colour")
        if kind != "error-compiled" and rows[-1][2] < rows[0][2] + 100:
            raise Failed(f"heat by {kind} has one colour: {rows}")
        visit.shot(f"heat-{kind}")
    choose(chrome, "heat", "none")
    chrome.wait("board.heat.nodes.size === 0", "no heat")
    expect(pixel(chrome, "conv2d_1", 30, 5), WHITE, "a node without heat")


# ---- heat of modules, and in the dark -------------------------------------------------------------
def percent(share):
    """As the page writes it."""
    value = share * 100
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %" if value >= 0.05 else "< 0.1 %"


def costs_of(visit, kind):
    """What the server says of each node of resnet, and of what all of it is a share."""
    server = visit.server
    if kind == "time":
        run = visit.chrome.run("import('/web/session.js').then((m) => m.current.now.profile.id)")
        profile, costs = server.call("GET", f"/v1/profiles/{run}").json(), {}
        for row in profile["nodes"]:
            for name in row["nodes"]:
                costs[name] = costs.get(name, 0) + row["us"] / len(row["nodes"])
        return costs, profile["run_us"]
    if kind.startswith("error"):
        inputs = visit.chrome.run("import('/web/session.js').then((m) => m.current.now.inputs)")
        b = {"graph": "resnet", "mode": "compiled", "precision": kind.split("-")[1]}
        reply = compared(server, {"a": {"graph": "resnet", "mode": "eager"}, "b": b, "nodes": True,
                                  "inputs": inputs})
        rows = [row for row in reply["nodes"] if row.get("a") and "max_abs" in row]
        return {row["a"]: row["max_abs"] for row in rows}, None
    rows = server.call("GET", "/v1/graphs/resnet/report?shapes=pixel_values:2,3,64,64").json()["nodes"]
    member = {"memory": "bytes", "operations": "flops"}[kind]
    costs = {row["node"]: row[member] for row in rows if row[member] > 0}
    return costs, sum(costs.values())


def module_values(visit, kind):
    """Of each module: the share of its nodes together, or the largest error among them."""
    around = dict(visit.chrome.run(
        "board.graph.nodes.map((n) => { const all = []; for (let s = n.scope; s; s = s.parent)"
        " all.push(s.id); return [n.name, all]; })"))
    (costs, total), values = costs_of(visit, kind), {}
    for name, cost in costs.items():
        for scope in around.get(name, ()):
            before = values.get(scope, 0)
            values[scope] = max(before, cost) if total is None else before + cost / total
    return values, total is None


COLOURS = """board.scene.shapes.filter((s) => s.kind === 'module' || s.node).map((s) => {
    const warmth = s.node ? board.heat.nodes.get(s.node.name) : board.heat.scopes.get(s.scope.id);
    if (!warmth) return null;
    const k = devicePixelRatio;
    Object.assign(board, {scale: 1, x: s.x - 99, y: s.y - 99});
    board.draw();
    board.paint();
    const data = board.context.getImageData(129 * k, 104 * k, 1, 1).data;
    return [warmth.share, [...data].slice(0, 3), s.title];
}).filter((row) => row)"""


def check_colours(chrome, warmth, what):
    """Of all cards that are drawn the larger share has the hotter colour, and there are several colours."""
    rows = sorted((share, warmth(colour), title) for share, colour, title in chrome.run(COLOURS))
    colder = [(a, b) for a, b in zip(rows, rows[1:]) if a[1] > b[1]]
    expect(colder, [], f"a larger share in a colder colour, {what}")
    if len(rows) < 5 or rows[-1][1] < rows[0][1] + 40:
        raise Failed(f"{what} has one colour: {rows}")


def heat_of_modules(visit):
    """Closed modules have the share of all that is in them, of each kind, and its colour, light and dark."""
    chrome, server = visit.chrome, visit.server
    server.call("POST", "/v1/graphs/resnet/run", server.call("GET", "/v1/graphs/resnet/example").body)
    visit.graph("resnet")
    chrome.run("import('/web/session.js').then((m) => m.inputsOf(m.current.now)).then(() => 0)")
    expect(chrome.run("document.documentElement.dataset.theme"), "light", "the theme")
    try:
        for kind, words in (("time", "share of the run"), ("memory", "of the bytes"),
                            ("operations", "of the operations"), ("error-int8", "largest error")):
            chrome.run("board.heat.words = ''")
            choose(chrome, "heat", kind)
            chrome.wait(f"board.heat.words.includes('{words}')", f"heat by {kind}")
            (wanted, is_error), found = module_values(visit, kind), chrome.run(
                "[...board.heat.scopes].map(([id, warmth]) => [id, warmth.share, warmth.text])")
            expect(sorted(row[0] for row in found), sorted(wanted), f"modules with heat by {kind}")
            for scope, share, text in found:
                if is_error:
                    near(number_of(text), wanted[scope], f"the largest error in {scope}")
                elif abs(share - wanted[scope]) > 1e-6 or text != percent(share):
                    raise Failed(f"{kind} of {scope}: {share}, {text}; expected {wanted[scope]}")
            check_colours(chrome, warmth_of, f"{kind}, light")
            chrome.key("d")
            chrome.wait("document.documentElement.dataset.theme === 'dark'", "the dark theme")
            check_colours(chrome, lambda colour: colour[0], f"{kind}, dark")
            chrome.run("board.fit(true)")
            visit.shot(f"dark-modules-{kind}")
            chrome.key("d")
    finally:
        chrome.run("localStorage.removeItem('fxserve-theme')")


def fact(chrome, key):
    """What the panel says behind a word; None: the word is not there."""
    return chrome.run("[...document.querySelectorAll('aside.side dt')].find((e) => e.innerText === "
                      f"{json.dumps(key)})?.nextSibling.innerText ?? null")


def alone_words(visit):
    """A node that stands alone says why it is not fused, one that is fused does not."""
    chrome = visit.chrome
    visit.graph("digits")
    rows = visit.server.call("GET", "/v1/graphs/digits/report?shapes=x:1,1,8,8").json()["nodes"]
    alone = {row["node"]: row["why_not"] for row in rows if row.get("why_not") and not row["fused_with"]}
    for name in ("max_pool2d", "linear_1", "div", "relu_1"):
        chrome.run(f"board.show('{name}')")
        chrome.wait(f"document.querySelector('aside.side code')?.innerText === '{name}'", name)
        if name in alone:
            chrome.wait_text("not fused", "aside.side")
            expect(fact(chrome, "not fused"), alone[name], f"why {name} stands alone")
        else:
            chrome.wait_text("fused with", "aside.side")
            expect(fact(chrome, "not fused"), None, f"words of {name}, which is fused")
    if len(alone) < 3:
        raise Failed(f"nodes that stand alone: {alone}")


def nan_is_magenta(visit):
    """NaN and infinities are counted, and magenta in pictures; as bars the others keep their lengths."""
    chrome, server = visit.chrome, visit.server
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "y", "target": "torch.log", "args": ["%x"]},
             {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]
    server.call("PUT", "/v1/graphs/logs", json.dumps({"format": "fx/1", "nodes": nodes}).encode())
    server.call("POST", "/v1/graphs/logs/run", b'{"inputs": {"x": [[1.0, 1.0, 1.0, 1.0]]}}')
    visit.go("#/g/logs/run")
    chrome.wait("!!document.querySelector('textarea')")
    chrome.run("document.querySelector('textarea').value = '[[2.0, -1.0, 0.0, 3.0]]'")
    chrome.click("button.first", "Run")
    chrome.wait_text("1 NaN, 1 inf", ".tensor .tag")
    choose(chrome, "shown as", "bars")
    expect(chrome.run("document.querySelector('.bars .best')?.innerText"), "3", "the largest number's bar")
    wide = chrome.run("[...document.querySelectorAll('.bars .bar i')].map((e) => e.offsetWidth)")
    if wide[1] or wide[2] or not 0 < wide[0] < wide[3]:
        raise Failed(f"bars of a number, NaN, -inf and a larger number: {wide}")
    for kind in ("picture", "heat map"):
        choose(chrome, "shown as", kind)
        data = chrome.run("[...document.querySelector('.tensor canvas').getContext('2d')"
                          ".getImageData(0, 0, 4, 1).data]")
        colours = [data[at:at + 3] for at in range(0, 16, 4)]
        expect([one == [255, 0, 200] for one in colours], [False, True, True, False],
               f"magenta among {colours} of a {kind}")
    visit.shot("nan")
    visit.forget("/v1/graphs/logs")


def upload_progress(visit):
    """A long upload over a slow line shows how far it is."""
    chrome, path = visit.chrome, os.path.join(visit.server.folder, "long.json")
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "y", "target": "torch.relu", "args": ["%x"]},
             {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"format": "fx/1", "nodes": nodes}) + " " * 900000)
    visit.go("#/")
    chrome.wait_text("digits", "table")
    chrome.run("window.seen = [], new MutationObserver(() => {"
               " const p = document.querySelector('progress[aria-label=upload]');"
               " if (p && p.offsetHeight > 3 && p.hasAttribute('value') && p.value !== seen.at(-1))"
               " seen.push(p.value); }).observe(document.body, {subtree: true, childList: true,"
               " attributes: true}), 0")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
    chrome.send("Network.emulateNetworkConditions", **slow, uploadThroughput=600000)
    try:
        chrome.files("input[type=file]", [path])
        chrome.wait("location.hash.includes('/g/long/')", "the uploaded graph", 60)
    finally:
        chrome.send("Network.emulateNetworkConditions", **slow, uploadThroughput=-1)
    seen = chrome.run("window.seen")
    if seen != sorted(seen) or len([one for one in seen if 0 < one < 1]) < 3:
        raise Failed(f"progress of an upload: {seen}")
    visit.forget("/v1/graphs/long")


def figures(chrome):
    """Those of a trial: what stands below each word."""
    return dict(chrome.run("[...document.querySelectorAll('.page .row > div')].map((e) => "
                           "[...e.children].map((c) => c.innerText)).filter((e) => e.length === 2)"))


def check_trial(visit, change, lines):
    """What was not stored yet shows all three: the diff of the code, times before and after, and the
    largest error, which is the server's."""
    chrome, side = visit.chrome, {"graph": "digits", "version": 1, "mode": "compiled"}
    chrome.wait_text("medians of 9 runs each, in turns, compiled", ".page")
    found, words = figures(chrome), chrome.run("document.querySelector('pre.code .add, pre.code .del')"
                                               "?.parentElement.innerText ?? ''")
    for key in ("before", "after"):
        if not re.fullmatch(r"[\d.]+ (µs|ms|s)", found.get(key, "")):
            raise Failed(f"time {key} in {found}")
    for line in lines:
        if line not in words:
            raise Failed(f"the diff lacks {line!r}: {words}")
    inputs = visit.server.call("GET", "/v1/graphs/digits/example").json()["inputs"]
    reply = compared(visit.server, {"a": {**side, **change}, "b": side, "inputs": inputs})
    wanted = max(row["max_abs"] for row in reply["outputs"])
    if not wanted > 0:
        raise Failed(f"the change changes nothing: {reply['outputs']}")
    near(float(found["largest error"]), wanted, "the largest error")


def patch_by_pointing(visit):
    """A part of a node's value is set by pointing at it: times before and after, and how far the result
    is from the one before, as the server says."""
    chrome = visit.chrome
    visit.graph("digits", "?node=relu")
    for label, value in (("a constant", "5"), ("part of the value", "0, 3, :, 1:3")):
        chrome.click(f"aside.side [aria-label='{label}']")
        chrome.type(value)
    chrome.click("aside.side button", "Make constant")
    chrome.click("aside.side a", "Try them")
    chrome.wait_text("relu[0,3,:,1:3] = 5", ".rule")
    chrome.click("button.first", "Try them")
    rule = {"match": {"name": "relu"}, "patch": {"index": [0, 3, ":", "1:3"], "set": 5}}
    check_trial(visit, {"overrides": [rule]}, ("+    ",))
    if "16 of 2048" not in chrome.run("document.querySelector('.page').innerText"):
        raise Failed("another part than that of two columns of eight was set")
    visit.shot("patch")


def check_compared(visit):
    """A stored rewrite beside the version that it was made of: the diff, the times of both and, node by
    node, the largest error, all on the page at once."""
    chrome = visit.chrome
    words = chrome.run("document.querySelector('.page').innerText")
    if not re.search(r"a: digits version 1, compiled, [\d.]+ (µs|ms|s); "
                     r"b: digits version 2, compiled, [\d.]+ (µs|ms|s)", words):
        raise Failed(f"no times of both: {words[-1500:]}")
    if "+    relu = torch.ops.aten.sigmoid.default" not in words:
        raise Failed(f"no diff: {words[-1500:]}")
    inputs = visit.server.call("GET", "/v1/graphs/digits/example").json()["inputs"]
    a, b = ({"graph": "digits", "version": version, "mode": "compiled"} for version in (1, 2))
    reply = compared(visit.server, {"a": a, "b": b, "nodes": True, "inputs": inputs})
    errors = {row["a"]: row["max_abs"] for row in reply["nodes"] if row.get("a") and row["max_abs"]}
    rows = chrome.run("[...document.querySelectorAll('table.values tbody tr')].map((e) =>"
                      " [...e.children].map((c) => c.innerText))")
    found = {row[0]: row for row in rows if row[0] in errors}
    if not {"relu", "conv2d_1", "linear_1"} <= set(found):
        raise Failed(f"rows of the table: {rows}")
    for name, row in found.items():
        near(float(row[4]), errors[name], f"the largest error of {name}")
