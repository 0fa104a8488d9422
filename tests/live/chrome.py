# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium, driven by Playwright: real clicks, keys, files and screenshots. Needs PyPI's
package playwright, whose driver comes with it, and no browser of its own."""
import contextlib
import json
import os
import re
import shutil
import signal
import threading
import time

from playwright.sync_api import Error, sync_playwright

from service import Failed

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"]
HANGS = 4  # times the usual wait: then the browser is ended


class Chrome:
    """One tab. Messages of the page's console and uncaught errors are collected in `problems`, addresses
    that it asks for in `requests`. Whatever is not there within `seconds` is Failed."""

    def __init__(self, width=1400, height=860, seconds=15):
        self.seconds, self.problems, self.requests = seconds, [], []
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS,
                                                       timeout=seconds * HANGS * 1000)
        self.context = self.browser.new_context(no_viewport=True)
        self.page = self.context.new_page()
        self.page.set_default_timeout(seconds * 1000)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self.note)
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.tools = self.context.new_cdp_session(self.page)
        found = self.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self.process = next(one["id"] for one in found if one["type"] == "browser")
        self.until, self.ended = None, threading.Event()
        self.watch = threading.Thread(target=self.watches, daemon=True)
        self.watch.start()
        self.size(width, height)

    def note(self, message):
        if message.type == "error":
            self.problems.append(f"{message.text} {message.location.get('url', '')}")

    def watches(self):
        """Playwright waits for ever for a promise of the page. Without its browser it says so."""
        while not self.ended.wait(0.5):
            if self.until is not None and time.monotonic() > self.until:
                self.until = None
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.process, signal.SIGKILL)

    @contextlib.contextmanager
    def bounded(self, what):
        """Failures are Failed, and nothing goes on for ever."""
        self.until = time.monotonic() + self.seconds * HANGS
        try:
            yield
        except Error as error:
            raise Failed(f"{what[:200]}: {error.message}") from error
        finally:
            self.until = None

    def close(self):
        with contextlib.suppress(Failed), self.bounded("closing"):
            self.browser.close()
        self.ended.set()
        self.watch.join()
        self.playwright.stop()

    def send(self, method, **params):
        """What the developer tools do."""
        with self.bounded(method):
            return self.tools.send(method, params)

    def trace(self, categories, text):
        """The value of an expression, and the browser's trace of what happened meanwhile."""
        with self.bounded("tracing"):
            self.browser.start_tracing(page=self.page, categories=categories)
            try:
                value = self.page.evaluate(text)
            finally:
                data = self.browser.stop_tracing()
            return value, data

    # ---- the page ----
    def size(self, width, height, ratio=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio,
                  mobile=False)

    def open(self, url):
        with self.bounded(url):
            self.page.goto(url)

    def run(self, text):
        """The value of an expression; promises are waited for. A function would be called."""
        with self.bounded(text):
            return self.page.evaluate(text)

    def wait(self, text, what="", seconds=None):
        """Until an expression is true."""
        end = time.monotonic() + (seconds or self.seconds)
        while time.monotonic() < end:  # the page's policy forbids what wait_for_function does
            found = self.run(text)
            if found:
                return found
            time.sleep(0.03)
        raise Failed(f"waited in vain for {what or text}")

    def wait_text(self, text, where="body"):
        return self.wait(f"!!document.querySelector({json.dumps(where)})?.innerText"
                         f".includes({json.dumps(text)})", f"the text {text!r} in {where}")

    def found(self, selector, text):
        """Of the elements that can be seen the first one that holds the text."""
        words = re.compile(re.escape(text or ""))
        return self.page.locator(selector, has_text=words).filter(visible=True).first

    def place(self, selector, text=None):
        """The middle of an element, once it stays where it is."""
        with self.bounded(f"{selector} {text or ''}"):
            element = self.found(selector, text).element_handle()
            element.scroll_into_view_if_needed()
            element.wait_for_element_state("stable")
            box = element.bounding_box()
            return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]

    def click(self, selector, text=None):
        with self.bounded(f"{selector} {text or ''}"):
            self.found(selector, text).click()

    def click_at(self, x, y):
        with self.bounded(f"a click at {x}, {y}"):
            self.page.mouse.click(x, y)

    def drag(self, points):
        with self.bounded("dragging"):
            self.page.mouse.move(*points[0])
            self.page.mouse.down()
            for x, y in points[1:]:
                self.page.mouse.move(x, y)
            self.page.mouse.up()

    def key(self, name):
        with self.bounded(f"the key {name}"):
            self.page.keyboard.press(name)

    def type(self, text):
        with self.bounded("typing"):
            self.page.keyboard.insert_text(text)

    def files(self, selector, paths):
        with self.bounded(selector):
            self.page.locator(selector).first.set_input_files(paths)

    def drop(self, selector, paths):
        """Files that are dragged from outside and dropped on an element."""
        x, y = self.place(selector)
        data = {"items": [], "files": [os.path.abspath(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def screenshot(self, path):
        with self.bounded("a screenshot"):
            self.page.screenshot(path=path)
