# SPDX-License-Identifier: Apache-2.0
"""A journey through the page (page.py) by keyboard alone: whatever has the focus can be seen."""
import json
import urllib.parse

from page_visit import READY, expect
from service import Failed, model_file

# What has the focus, and why that cannot be seen; "" where it can.
FOCUS = ("(() => { const e = document.activeElement; if (!e || e === document.body) return ['', 'nothing'];"
         " const s = getComputedStyle(e), b = e.getBoundingClientRect();"
         " const drawn = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1;"
         " const inside = b.width > 0 && b.height > 0 && b.right > 0 && b.bottom > 0 && b.left < innerWidth"
         " && b.top < innerHeight;"
         " const words = e.getAttribute('aria-label') || e.innerText || '';"
         " return [words.trim(), drawn && inside ? '' : `${drawn ? '' : 'no outline'} ${inside ? '' : 'not in"
         " the window'}: ${e.outerHTML.slice(0, 160)}`]; })()")


def focus(chrome, where):
    """The words of what has the focus, which must be seen."""
    words, problem = chrome.run(FOCUS)
    if problem:
        raise Failed(f"{where}: the focus cannot be seen: {problem}")
    return words


def arrived(chrome, text, what):
    """A view has come, with the focus in it."""
    chrome.wait(text, what)
    chrome.wait("document.activeElement !== document.body", f"the focus, {what}")
    focus(chrome, what)


def tab_to(chrome, wanted, most=60):
    seen = []
    for _ in range(most):
        chrome.key("Tab")
        seen.append(focus(chrome, f"on the way to {wanted}"))
        if seen[-1] == wanted:
            return
    raise Failed(f"Tab does not lead to {wanted}: {[one[:30] for one in seen]}")


def has(selector, words):
    return f"document.querySelector('{selector}')?.innerText.includes('{words}')"


def press(chrome, wanted, found):
    """Tab leads to a button or link, which Enter presses."""
    tab_to(chrome, wanted)
    chrome.key("Enter")
    arrived(chrome, found, f"what {wanted} does")


def type_keys(chrome, text):
    for letter in text:
        chrome.key(letter)


def open_graph(chrome, name):
    """From the list of graphs."""
    chrome.wait(f"[...document.querySelectorAll('td a')].some((a) => a.innerText === '{name}')", name)
    tab_to(chrome, name)
    chrome.run("delete document.documentElement.dataset.ready")
    chrome.key("Enter")
    arrived(chrome, READY, f"the drawing of {name}")
    chrome.wait_text(name, "header .crumb")


def find_node(chrome, name, words):
    chrome.key("/")
    arrived(chrome, "document.activeElement.matches('input.find')", "the field")
    type_keys(chrome, name)
    chrome.wait("document.querySelector('.found li[aria-selected=true]')?.innerText"
                f".includes('{name}')", name)
    chrome.run("delete document.documentElement.dataset.ready")
    chrome.key("Enter")
    arrived(chrome, READY, name)
    chrome.wait_text(words, "aside.side h2")


def flip(chrome, key, text):
    """A key that switches something on, and off again."""
    chrome.key(key)
    arrived(chrome, text, f"{key} on")
    chrome.key(key)
    arrived(chrome, f"!({text})", f"{key} off")


def walk_into_a_module(chrome):
    for _ in range(2):  # all open, all closed
        chrome.key("o")
    chrome.wait("!board.scene.shapes.some((s) => s.kind === 'open')", "closed modules")
    for _ in range(12):
        chrome.key("ArrowDown")
        if chrome.run("board.selectedShape()?.kind === 'module'"):
            break
    chrome.key("Enter")
    arrived(chrome, "board.scene.shapes.some((s) => s.kind === 'open')", "an open module")
    chrome.wait("location.hash.includes('open=')", "its address")


def keep_focus(visit):
    """A graph that comes while another one has the focus does not take it."""
    chrome = visit.chrome
    chrome.wait("document.querySelector('.live')?.parentElement.innerText.match(/Nothing|µs/)", "a stream")
    visit.server.call("PUT", "/v1/graphs/newcomer", model_file("digits.pt2"))
    arrived(chrome, "document.querySelector('table').innerText.includes('newcomer')", "another graph")
    if focus(chrome, "after another graph came") != "digits-changed":
        raise Failed("the focus went elsewhere")
    visit.forget("/v1/graphs/newcomer")


def by_keyboard(visit):
    """From the start: a module is opened, a node found, the example run, its time seen; a constant in the
    place of a node is tried, stored, and stands in the list."""
    chrome = visit.chrome
    visit.go("#/")
    open_graph(chrome, "resnet")
    walk_into_a_module(chrome)
    chrome.key("s")
    arrived(chrome, "document.querySelector('h1')?.textContent === 'Graphs'", "the start")
    open_graph(chrome, "digits")
    chrome.key("r")
    arrived(chrome, "!!document.querySelector('textarea')", "the form")
    press(chrome, "The example", "document.querySelector('textarea')?.value.startsWith('[[[[')")
    press(chrome, "Run", "document.querySelector('.tensor')?.innerText.includes('[2, 10]')")
    chrome.key("t")
    arrived(chrome, "document.querySelectorAll('.lane').length > 5", "the timeline")
    chrome.run("delete document.documentElement.dataset.ready")
    chrome.key("g")
    arrived(chrome, READY, "the drawing again")
    flip(chrome, "h", "board.heat.nodes.size === 0")
    flip(chrome, "k", "!!document.querySelector('aside.wide')")
    flip(chrome, "p", "board.parameters")
    find_node(chrome, "relu", "ReLU")
    tab_to(chrome, "a constant")
    type_keys(chrome, "0.5")
    chrome.key("Enter")
    arrived(chrome, has("aside.side", "1 rule waits"), "a rule")
    press(chrome, "Try them →", has(".rule", "relu"))
    press(chrome, "Try them", has(".page", "medians of"))
    press(chrome, "Store as a graph", has(".page", "stored: digits-changed"))
    visit.shot("keyboard")
    chrome.key("s")
    arrived(chrome, has("table", "digits-changed"), "the list")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "the pad")
    tab_to(chrome, "digits-changed")
    keep_focus(visit)
    tab_to(chrome, "clear")  # past all that uploads
    visit.forget("/v1/graphs/digits-changed")


def held(chrome, wanted, what):
    """The focus is on the control of these words, and can be seen."""
    found = "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
    chrome.wait(f"({found} || '').trim() === {json.dumps(wanted)}", f"the focus on {wanted}, {what}")
    focus(chrome, what)


def remove_rules(visit):
    """The next rule's button takes the place of the one that was pressed; behind the last one comes what
    stands behind the list."""
    chrome = visit.chrome
    rules = [{"match": {"name": name}, "passthrough": 0} for name in ("relu", "relu_1", "relu_2")]
    visit.go(f"#/g/digits/change?rules={urllib.parse.quote(json.dumps(rules))}")
    chrome.wait("document.querySelectorAll('.rule').length === 3", "three rules")
    tab_to(chrome, "remove")
    for n in (2, 1):
        chrome.key("Enter")
        chrome.wait(f"document.querySelectorAll('.rule').length === {n}", f"{n} rules")
        held(chrome, "remove", f"with {n} rules")
    chrome.key("Enter")
    chrome.wait("document.querySelectorAll('.rule').length === 0", "no rules")
    held(chrome, "as JSON", "without rules")


def serve_versions(visit):
    """The button of the other version takes the place of the one that was pressed."""
    chrome, server = visit.chrome, visit.server
    for name in ("digits", "dev_lenet"):
        server.call("PUT", "/v1/graphs/served", model_file(f"{name}.pt2"))
    visit.go("#/g/served/change")
    chrome.wait("[...document.querySelectorAll('button')].some((e) => e.innerText === 'Serve this one')")
    tab_to(chrome, "Serve this one")
    for version in (1, 2):
        chrome.key("Enter")
        chrome.wait_text(f"version {version} serves now", ".toast")
        chrome.wait("document.querySelector('span.tag')?.parentElement.innerText"
                    f".includes('version {version}')", "which one serves")
        held(chrome, "Serve this one", f"after version {version}")
    visit.forget("/v1/graphs/served")


def run_from_the_panel(visit):
    """The button goes once the graph has run; the first node of the list has the focus. From it to the
    node's panel, and on to one that it reads: the heading has the focus."""
    chrome = visit.chrome
    visit.server.call("PUT", "/v1/graphs/fresh", model_file("dev_resnet_hf.pt2"))
    visit.graph("fresh")
    press(chrome, "Run the example", has("aside.side", "Where time goes"))
    first = chrome.run("document.querySelector('aside.side table button').innerText")
    held(chrome, first, "after the run")
    chrome.key("Enter")
    chrome.wait("document.querySelectorAll('aside.side ul.nodes button').length > 0", "what the node reads")
    held(chrome, chrome.run("document.querySelector('aside.side h2').innerText"), "on the node's panel")
    visit.forget("/v1/graphs/fresh")


def rows_of_time(visit):
    """A row of the list of runs leads to the run that it shows, and keeps the focus when others run."""
    chrome, server = visit.chrome, visit.server
    body = model_file("digits_images.json")
    for _ in range(3):
        server.call("POST", "/v1/graphs/digits/run", body)
    visit.go("#/g/digits/time")
    chrome.wait("document.querySelectorAll('tr.link button').length >= 3", "runs")
    row = chrome.run("document.querySelectorAll('tr.link button')[1].innerText")
    tab_to(chrome, row, 400)
    chrome.key("Enter")
    chrome.wait(f"location.hash.includes({json.dumps(row)})", "the run")
    held(chrome, f"Run {row}", "after the run was shown")
    tab_to(chrome, row, 400)
    count = ("[...[...document.querySelectorAll('.page table')].find((t) => t.innerText.includes('99 %'))"
             "?.querySelectorAll('tr') || []].reduce((sum, row) => sum + Number(row.querySelector('td.num')"
             "?.innerText || 0), 0)")
    chrome.run("document.activeElement.scrollIntoView({block: 'end'})")
    before, images = chrome.run(count), json.loads(body)["inputs"]["x"]
    slower = json.dumps({"inputs": {"x": images * 5}, "priority": 9}).encode()  # they come above that row
    for _ in range(4):  # the first one, in which a program is built, is not counted
        expect(server.call("POST", "/v1/graphs/digits/run", slower).status, 200, "a run of others")
    chrome.wait(f"{count} >= {before} + 3", "the runs of others in the table")
    focus(chrome, "after others ran")
    if chrome.run("document.activeElement.matches('tr.link button')") is not True:
        raise Failed("the focus left the list of runs")


def lines_and_rows(visit):
    """Lines of the code, and rows of what is found, by arrows."""
    chrome = visit.chrome
    visit.graph("digits", "?node=relu&code=1")
    chrome.wait("document.querySelector('.line[aria-current]')?.innerText.includes('relu = ')", "the code")
    tab_to(chrome, chrome.run("document.querySelector('.line[aria-current]').innerText.trim()"))
    chrome.key("ArrowDown")
    if "conv2d_1 = " not in focus(chrome, "on the next line"):
        raise Failed("ArrowDown does not lead to the next line")
    chrome.key("Enter")
    chrome.wait("board.selected === 'n conv2d_1'", "the node of the line")
    chrome.wait("document.activeElement.matches('.line[aria-current]')", "the focus on its line")
    chrome.key("ArrowUp")
    if "relu = " not in focus(chrome, "on the line before"):
        raise Failed("ArrowUp does not lead to the line before")
    chrome.run("sessionStorage.removeItem('fxserve-code')")
    chrome.key("/")
    arrived(chrome, "document.activeElement.matches('input.find')", "the field")
    type_keys(chrome, "conv")
    rows = "document.querySelectorAll('.found li')"
    chrome.wait(f"{rows}.length > 1 && {rows}[0].ariaSelected === 'true'", "what is found")
    chrome.key("ArrowDown")
    marked = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
    chrome.wait(f"{rows}[1].ariaSelected === 'true' && {marked} === {rows}[1]", "the second row")
    name = chrome.run(f"{rows}[1].children[1].innerText")
    chrome.key("Enter")
    chrome.wait(f"board.selected === 'n {name}'", "its node")


def focus_stays(visit):
    """Controls that go, or are drawn anew, when they were pressed leave the focus to one that is there."""
    for journey in (remove_rules, serve_versions, run_from_the_panel, rows_of_time, lines_and_rows):
        journey(visit)
