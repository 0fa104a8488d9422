# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium, driven over its pipe by the DevTools protocol: real clicks, keys, files and
screenshots. Needs nothing but the browser."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from service import Failed

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
         "--remote-debugging-pipe"]
KEYS = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39,
        "Tab": 9}


class Chrome:
    """One tab. Messages of the page's console and uncaught errors are collected in `problems`."""

    def __init__(self, width=1400, height=860, seconds=15):
        self.profile, self.seconds, self.number = tempfile.mkdtemp(prefix="fxserve-chrome-"), seconds, 0
        self.problems, self.replies, self.buffer, self.requests, self.loads = [], {}, b"", [], 0
        down, up = os.pipe(), os.pipe()

        def wire():  # the browser reads its descriptor 3 and writes 4
            os.dup2(down[0], 1000)
            os.dup2(up[1], 1001)
            os.dup2(1000, 3)
            os.dup2(1001, 4)

        self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            ["chromium", *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=wire, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=self.profile))
        os.close(down[0])
        os.close(up[1])
        self.out, self.into = down[1], up[0]
        self.session = None
        page = next(one for one in self.targets() if one["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.size(width, height)

    def targets(self):
        end = time.monotonic() + self.seconds
        while True:
            found = self.send("Target.getTargets")["targetInfos"]
            if any(one["type"] == "page" for one in found) or time.monotonic() > end:
                return found

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
        except (Failed, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---- protocol ----
    def take(self, wait):
        """The next message, or None."""
        end = time.monotonic() + wait
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(self.into, 1 << 20)
            if not chunk:
                raise Failed("Chromium has gone")
            self.buffer += chunk
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        """Keeps what an event says."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loads += 1

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            reply = self.take(end - time.monotonic())
            if reply is None:
                break
            if reply.get("id") == message["id"]:
                if "error" in reply:
                    raise Failed(f"{method}: {reply['error']['message']}")
                return reply["result"]
            self.note(reply)
        raise Failed(f"{method}: Chromium does not answer")

    # ---- the page ----
    def size(self, width, height, ratio=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio,
                  mobile=False)

    def open(self, url):
        loads = self.loads
        self.send("Page.navigate", url=url)
        end = time.monotonic() + self.seconds
        while self.loads == loads and time.monotonic() < end:
            message = self.take(0.1)
            if message:
                self.note(message)

    def run(self, text):
        """The value of an expression; promises are waited for."""
        result = self.send("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise Failed(f"{text[:200]}: {details.get('exception', {}).get('description', details['text'])}")
        return result["result"].get("value")

    def wait(self, text, what="", seconds=None):
        """Until an expression is true."""
        end = time.monotonic() + (seconds or self.seconds)
        while time.monotonic() < end:
            found = self.run(text)
            if found:
                return found
            time.sleep(0.05)
        raise Failed(f"waited in vain for {what or text}")

    def wait_text(self, text, where="body"):
        return self.wait(f"!!document.querySelector({json.dumps(where)})?.innerText"
                         f".includes({json.dumps(text)})", f"the text {text!r} in {where}")

    def place(self, selector, text=None):
        """The middle of an element that stays where it is, of those that a selector finds the first
        that holds the text."""
        before, found = None, self.middle(selector, text)
        end = time.monotonic() + self.seconds
        while found != before and time.monotonic() < end:
            time.sleep(0.1)
            before, found = found, self.middle(selector, text)
        return found

    def middle(self, selector, text):
        return self.wait(
            f"(() => {{ const all = [...document.querySelectorAll({json.dumps(selector)})]"
            f".filter((e) => e.offsetParent !== null && e.textContent.includes({json.dumps(text or '')}));"
            " if (!all.length) return null; all[0].scrollIntoView({block: 'nearest'});"
            " const b = all[0].getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2]; })()", f"{selector} {text or ''}")

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more)

    def click(self, selector, text=None):
        self.click_at(*self.place(selector, text))

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def drag(self, points):
        self.mouse("mousePressed", *points[0])
        for x, y in points[1:]:
            self.mouse("mouseMoved", x, y, buttons=1)
        self.mouse("mouseReleased", *points[-1])

    def key(self, name):
        code = KEYS.get(name, 0)
        more = {"text": "\r"} if name == "Enter" else {} if code else {"text": name}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=code, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def files(self, selector, paths):
        document = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", files=paths, nodeId=node)

    def drop(self, selector, paths):
        """Files that are dragged from outside and dropped on an element."""
        x, y = self.place(selector)
        data = {"items": [], "files": [os.path.abspath(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def screenshot(self, path):
        data = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
