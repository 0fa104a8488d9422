# SPDX-License-Identifier: Apache-2.0
"""A page of another origin calls fxserve from a real browser: browser.py FXSERVE. Needs Debian's
chromium.

Two small sites serve the same page: one is named by --allow-origin, the other is not. The page
uploads, runs and deletes a graph with fetch(), reads bodies and headers of replies and of refusals,
and writes what it saw into its own text, which headless Chromium prints. The last line is `N
passed, N failed`.
"""
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "service"))
from service import Failed, Server, Tally

TOKEN = "a-token-of-the-browser-0123456789"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--virtual-time-budget=60000", "--dump-dom"]
SECONDS = 120

PAGE = """<!doctype html><meta charset="utf-8"><title>calls</title><pre id="seen"></pre><script>
const api = API, token = TOKEN, seen = [];
const graph = {format: "fx/1", nodes: [{op: "placeholder", name: "x", target: "x"},
               {op: "call_function", name: "y", target: "torch.relu", args: ["%x"]},
               {op: "output", name: "output", target: "output", args: ["%y"]}]};
async function call(name, path, options = {}) {
        const row = {name};
        try {
                const reply = await fetch(api + path, options), text = await reply.text();
                Object.assign(row, {status: reply.status, headers: Object.fromEntries(reply.headers), text});
        } catch (error) {
                row.error = error.name;
        }
        seen.push(row);
}
async function all() {
        const bearer = {"Authorization": "Bearer " + token};
        const json = {...bearer, "Content-Type": "application/json"};
        const run = {method: "POST", headers: json, body: JSON.stringify({inputs: {x: [1.5, -2]}})};
        await call("PUT", "/v1/graphs/m", {method: "PUT", headers: json, body: JSON.stringify(graph)});
        await call("POST", "/v1/graphs/m/run", run);
        await call("GET", "/v1/graphs/m", {headers: bearer});
        const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        await call("another header", "/v1/graphs/m", {headers: {...bearer, "X-Anything": "1", traceparent}});
        await call("without a token", "/v1/graphs/m");
        await call("a plain POST without a token", "/v1/graphs/m/run", {method: "POST", body: "{}"});
        await call("no such path", "/nothing", {method: "PATCH", headers: bearer});
        await call("no such graph", "/v1/graphs/none/run", run);
        await call("wrong inputs", "/v1/graphs/m/run", {...run, body: "{"});
        await call("a body too large", "/v1/graphs/m/run", {...run, body: " ".repeat(200000)});
        await call("a method the path lacks", "/v1/ops", {method: "DELETE", headers: bearer});
        await call("PATCH", "/v1/graphs/m", {method: "PATCH", headers: json, body: '{"default_version": 1}'});
        await call("DELETE", "/v1/graphs/m", {method: "DELETE", headers: bearer});
        await call("with cookies", "/v1/graphs", {headers: bearer, credentials: "include"});
        const entries = performance.getEntriesByName(api + "/v1/graphs/m/run");
        const timed = entries.some(entry => entry.serverTiming.length > 0);
        seen.push({name: "Server-Timing among performance entries", timed});
        document.getElementById("seen").textContent = JSON.stringify(seen);
}
all();
</script>
"""
# What the page of an allowed origin must see: status, headers it can read, a part of the body.
ALLOWED = {
    "PUT": (201, ["x-request-id", "etag", "location"], '"version"'),
    "POST": (200, ["x-request-id", "server-timing"], "[1.5, 0"),
    "GET": (200, ["etag"], '"name": "m"'),
    "another header": (200, [], '"name": "m"'),
    "without a token": (401, ["www-authenticate"], "unauthorized"),
    "a plain POST without a token": (401, [], "unauthorized"),
    "no such path": (404, [], "not_found"),
    "no such graph": (404, [], "not_found"),
    "wrong inputs": (400, [], "code"),
    "a body too large": (413, [], "too_large"),
    "a method the path lacks": None,  # the preflight's list of methods forbids it
    "PATCH": (200, [], '"default_version"'),
    "DELETE": (204, [], ""),
    "with cookies": None,  # there are none to allow
}


class Site:
    """One page, on a port of its own."""

    def __init__(self):
        self.page = b""
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                found = self.path == "/"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                if found:
                    self.wfile.write(site.page)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def visit(url):
    """What the page at `url` has seen."""
    with tempfile.TemporaryDirectory(prefix="fxserve-browser-") as profile:
        done = subprocess.run(["chromium", *FLAGS, f"--user-data-dir={profile}", url],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False,
                              env=dict(os.environ, HOME=profile))
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout.decode("utf-8", "replace"), re.S)
    if not found:
        raise Failed(f"Chromium prints no result (exit code {done.returncode}): {done.stdout[-300:]!r} "
                     f"{done.stderr[-700:]!r}")
    text = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return {row["name"]: row for row in json.loads(text)}


def check_allowed(tally, seen):
    for name, wanted in ALLOWED.items():
        row, problem = seen.get(name, {"error": "not called"}), None
        if wanted is None:
            problem = None if row.get("error") == "TypeError" else f"it was let through: {row}"
        elif "error" in row:
            problem = f"the browser hides the reply: {row['error']}"
        else:
            status, headers, text = wanted
            lacking = [header for header in headers if header not in row["headers"]]
            if row["status"] != status or lacking or text not in row["text"]:
                problem = (f"{row['status']} {row['headers']} {row['text'][:300]}; expected {status}, "
                           f"headers {headers}, {text!r}")
        tally.check(f"allowed: {name}", problem)
    tally.check("allowed: Server-Timing among performance entries", None
                if seen.get("Server-Timing among performance entries", {}).get("timed") else "there is none")


def main():
    if len(sys.argv) != 2:
        print("usage: browser.py FXSERVE")
        return 2
    tally = Tally()
    if shutil.which("chromium") is None:
        tally.check("a browser", "chromium is not installed")
        return tally.end()
    friend, stranger = Site(), Site()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        tokens = os.path.join(folder, "tokens")
        with open(tokens, "w", encoding="utf-8") as file:
            file.write(f"{TOKEN} admin\n")
        server = Server(sys.argv[1], ["--data", "none", "--token-file", tokens, "--max-run-body", "100000",
                                      "--allow-origin", f"https://elsewhere.example, {friend.origin}"],
                        folder=folder)
        try:
            server.start()
            page = PAGE.replace("API", json.dumps(server.url)).replace("TOKEN", json.dumps(TOKEN)).encode()
            friend.page = stranger.page = page
            check_allowed(tally, visit(friend.origin + "/"))
            for name, row in visit(stranger.origin + "/").items():
                if "timed" not in row:
                    tally.check(f"another origin: {name}",
                                None if row.get("error") == "TypeError" else f"it was let through: {row}")
            tally.check("the server's end", "; ".join(server.stop()))
        except (Failed, OSError, subprocess.TimeoutExpired) as error:
            tally.check("the browser's visit", str(error)[:1500])
        finally:
            server.clean_up()
            friend.close()
            stranger.close()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
