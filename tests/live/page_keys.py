# SPDX-License-Identifier: Apache-2.0
"""A journey through the page (page.py) by keyboard alone: whatever has the focus can be seen."""
from page_visit import READY
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
    tab_to(chrome, "The example")
    chrome.key("Enter")
    arrived(chrome, "document.querySelector('textarea')?.value.startsWith('[[[[')", "the example")
    tab_to(chrome, "Run")
    chrome.key("Enter")
    arrived(chrome, "document.querySelector('.tensor')?.innerText.includes('[2, 10]')", "the result")
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
    arrived(chrome, "document.querySelector('aside.side').innerText.includes('1 rule waits')", "a rule")
    tab_to(chrome, "Try them →")
    chrome.key("Enter")
    arrived(chrome, "document.querySelector('.rule')?.innerText.includes('relu')", "the rule in Change")
    tab_to(chrome, "Try them")
    chrome.key("Enter")
    arrived(chrome, "document.querySelector('.page').innerText.includes('medians of')", "what it changes")
    tab_to(chrome, "Store as a graph")
    chrome.key("Enter")
    stored = "stored: digits-changed"
    arrived(chrome, f"document.querySelector('.page').innerText.includes('{stored}')", "a variant")
    visit.shot("keyboard")
    chrome.key("s")
    arrived(chrome, "document.querySelector('table')?.innerText.includes('digits-changed')", "the list")
    chrome.wait("document.querySelectorAll('.bars .bar').length === 10", "the pad")
    tab_to(chrome, "digits-changed")
    keep_focus(visit)
    tab_to(chrome, "clear")  # past all that uploads
    visit.forget("/v1/graphs/digits-changed")
