# SPDX-License-Identifier: Apache-2.0
"""The door, as far as text files cannot say it: door.py FXSERVE. HTTPS with a certificate made
here, bodies with Content-Encoding, tokens that appear nowhere, clients that leave at random
moments, a body of 64 MB of nothing, tokens and certificates that change under a running server,
every route with every scope."""
import gzip
import json
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import zlib

from service import CODECS, MODELS, Connection, Failed, Server, Tally, routes

RUN = b'{"inputs": {"x": [[1.5, -2.0], [3.0, 4.0]]}}'
TOKEN = "a-token-of-the-test-0123456789"


def model(name):
    with open(os.path.join(MODELS, name), "rb") as file:
        return file.read()


def expect(got, want, what):
    if got != want:
        raise Failed(f"{what}: {got}, expected {want}")


# ---- HTTPS -------------------------------------------------------------------------------------
def make_certificate(folder, days=2):
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", str(days), "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cert, key


def secure(server, cert, version=None):
    context = ssl.create_default_context(cafile=cert)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    connection = Connection(server.port, 10)
    connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
    return connection


def https(binary):
    if shutil.which("openssl") is None:
        print("openssl is not installed: HTTPS is left out")
        return
    server = Server(binary, ["--data", "none"])
    cert, key = make_certificate(server.folder)
    server.flags += ["--tls-cert", cert, "--tls-key", key]
    try:
        server.start()
        expect(server.url.startswith("https://"), True, "the address printed is https")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with secure(server, cert, version) as connection:
                connection.request("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
                connection.request("POST", "/v1/graphs/m/run", RUN)
                connection.reply()
                reply = connection.reply()
                expect((reply.status, reply.json()["outputs"][0]["data"]), (200, [[1.5, 0], [3, 4]]), "a run")
                body = b" " * 300000 + RUN
                connection.request("POST", "/v1/graphs/m/run", body, chunk=70000)
                expect(connection.reply().status, 200, "a large run in chunks")
        # A page of this very server may call it; the same host without TLS is another origin.
        for scheme, status in (("https", 200), ("http", 403)):
            with secure(server, cert) as connection:
                connection.request("GET", "/v1", headers=[("Host", f"localhost:{server.port}"),
                                                          ("Origin", f"{scheme}://localhost:{server.port}")])
                expect(connection.reply().status, status, f"an Origin of {scheme}")
        # The strict reader sees what was decrypted.
        with secure(server, cert) as connection:
            connection.send(b"GET /v1/graphs HTTP/1.1\nHost: localhost\n\n")
            expect(connection.reply().status, 400, "bare LF")
        with secure(server, cert) as connection:
            connection.send(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
                            b"\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            expect((connection.reply().status, connection.closed()), (400, True), "two framings")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        try:
            context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 5)).close()
            raise Failed("TLS 1.1 was taken")
        except (ssl.SSLError, OSError):
            pass
        # A client of plain HTTP gets nothing, and the next one is well.
        with Connection(server.port, 5) as connection:
            connection.request("GET", "/livez")
            try:
                connection.reply()
                raise Failed("plain HTTP was answered")
            except Failed as error:
                if "was closed" not in str(error):
                    raise
        with secure(server, cert) as connection:
            connection.request("GET", "/livez")
            expect(connection.reply().status, 200, "after that")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


def commands_over_https(binary):
    """push, list and call check the certificate, send the token of FXSERVE_TOKEN, and upload whole
    files."""
    if shutil.which("openssl") is None:
        print("openssl is not installed: commands over HTTPS are left out")
        return
    server = Server(binary, ["--data", "none"])
    cert, key = make_certificate(server.folder)
    tokens = os.path.join(server.folder, "tokens")
    with open(tokens, "w", encoding="utf-8") as file:
        file.write(f"{TOKEN} admin\n")
    server.flags += ["--tls-cert", cert, "--tls-key", key, "--token-file", tokens]

    def ask(command, *flags, token=TOKEN):
        words = [binary] + command.split() + ["--url", f"https://localhost:{server.port}"] + list(flags)
        done = subprocess.run(words, env=dict(os.environ, FXSERVE_TOKEN=token), capture_output=True,
                              text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    try:
        server.start()
        expect(ask("list")[0], 1, "a certificate that nobody signed")
        expect("is not trusted" in ask("list")[2], True, "the words for that")
        expect("--ca FILE" in ask("list")[2], True, "what helps against that")
        told = ask("list", "--url", f"https://127.0.0.1:{server.port}", "--ca", cert)[2]
        expect("does not match" in told and "--ca" not in told, True, f"another name: {told}")
        expect(ask(f"push {MODELS}/digits.pt2", "--ca", cert)[0], 0, "an upload")
        expect("digits" in ask("list", "--ca", cert)[1], True, "the list")
        expect(json.loads(ask("call digits", "--ca", cert)[1])["outputs"][0]["shape"][1], 10,
               "a run of the example")
        code, _, words = ask("list", "--insecure", token="wrong-" + TOKEN)
        expect((code, "HTTP 401" in words), (1, True), "another token")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


def request_ids(binary):
    """Ids that were seen do not tell the next one."""
    server, step, mask = Server(binary, ["--data", "none", "--quiet"]), 0x9e3779b97f4a7c15, (1 << 64) - 1
    try:
        server.start()
        ids = []
        with server.connect() as connection:
            for _ in range(300):
                connection.request("GET", "/livez")
                ids.append(int(connection.reply().header("X-Request-Id"), 16))
        expect(len(set(ids)), 300, "different ids")
        expect(300 * 64 * 0.45 < sum(bin(one).count("1") for one in ids) < 300 * 64 * 0.55, True,
               "as many ones as zeros")
        pairs = list(zip(ids, ids[1:]))
        expect(len({(b - a) & mask for a, b in pairs}), 299, "different steps")
        # A counter times a constant, mixed with a seed.
        expect([n for n in range(1000) for a, b in pairs[:1] if (n + 1) * step & mask ^ (n * step & mask ^ a)
                == b], [], "a counter that explains them")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- files that change under a running server --------------------------------------------------
NEW_TOKEN = "another-token-of-the-test-0123456789"


class Mount:
    """A folder as Kubernetes mounts a secret: each name leads through `..data` to a folder that is
    replaced as a whole."""

    def __init__(self, folder):
        self.folder, self.n = folder, 0
        os.mkdir(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def replace(self, **files):
        self.n += 1
        os.mkdir(self.path(f"..{self.n}"))
        for name, data in files.items():
            with open(self.path(f"..{self.n}/{name}"), "wb") as file:
                file.write(data)
            if self.n == 1:
                os.symlink(f"..data/{name}", self.path(name))
        os.symlink(f"..{self.n}", self.path("..next"))
        os.rename(self.path("..next"), self.path("..data"))


def pair_of(folder, days):
    os.mkdir(folder)
    pair = []
    for path in make_certificate(folder, days):
        with open(path, "rb") as file:
            pair.append(file.read())
    return pair


def bearer(token):
    return [("Authorization", f"Bearer {token}")]


def shown(server):
    """The certificate a new connection gets, as PEM."""
    return ssl.get_server_certificate(("127.0.0.1", server.port)).encode()


def ask(connection, target, token):
    connection.request("GET", target, headers=bearer(token))
    return connection.reply()


def until(question, wanted, what):
    end = time.monotonic() + 30
    while (got := question()) != wanted:
        if time.monotonic() > end:
            raise Failed(f"{what}: still {got}")
        time.sleep(0.05)


def reloading(binary):
    if shutil.which("openssl") is None:
        print("openssl is not installed: certificates that change are left out")
        return
    server = Server(binary, ["--data", "none"])
    mount = Mount(os.path.join(server.folder, "secret"))
    pairs = [pair_of(os.path.join(server.folder, f"pair{days}"), days) for days in (2, 30, 60, 90)]

    def lines(of):
        return f"{of} read,run\n".encode()

    def stale(connection, token):
        text = ask(connection, "/metrics", token).body.decode()
        return dict(re.findall(r'^fxserve_file_stale\{file="(\w+)"\} (\d)$', text, re.M))

    mount.replace(cert=pairs[0][0], key=pairs[0][1], tokens=lines(TOKEN))
    server.flags += ["--tls-cert", mount.path("cert"), "--tls-key", mount.path("key"), "--token-file",
                     mount.path("tokens")]
    try:
        server.start()
        expect(shown(server), pairs[0][0], "the first certificate")
        kept = secure(server, mount.path("cert"))
        expect(ask(kept, "/v1", TOKEN).status, 200, "the first token")
        mount.replace(cert=pairs[1][0], key=pairs[1][1], tokens=lines(NEW_TOKEN))
        until(lambda: shown(server), pairs[1][0], "a new handshake shows the old certificate")
        until(lambda: ask(kept, "/v1", NEW_TOKEN).status, 200,
              "the new token, on the connection that was open")
        expect(ask(kept, "/v1", TOKEN).status, 401, "the old token")
        with secure(server, mount.path("cert")) as connection:
            ends = ssl.cert_time_to_seconds(connection.socket.getpeercert()["notAfter"])
            text = ask(connection, "/metrics", NEW_TOKEN).body.decode()
            expect(re.findall(r"^fxserve_tls_certificate_expiry_timestamp_seconds (\d+)$", text, re.M),
                   [str(ends)], "the metric")
            expect(stale(connection, NEW_TOKEN), {"tokens": "0", "certificate": "0"}, "what is stale")
        # A key of another certificate, and a scope that there is not: what was read before stays,
        # and the log says so once.
        mount.replace(cert=pairs[2][0], key=pairs[1][1], tokens=lines(TOKEN).replace(b"run", b"fly"))
        until(lambda: stale(kept, NEW_TOKEN), {"tokens": "1", "certificate": "1"}, "what is stale")
        expect(shown(server), pairs[1][0], "the certificate after a bad one")
        expect((ask(kept, "/v1", NEW_TOKEN).status, ask(kept, "/v1", TOKEN).status), (200, 401),
               "the tokens after bad ones")
        # Written in place, one after the other: they do not fit until both are there.
        for name, data in (("cert", pairs[3][0]), ("key", pairs[3][1]), ("tokens", lines(TOKEN))):
            with open(mount.path(name), "wb") as file:
                file.write(data)
        until(lambda: shown(server), pairs[3][0], "the certificate written in place")
        until(lambda: stale(kept, TOKEN), {"tokens": "0", "certificate": "0"}, "what is stale in the end")
        kept.close()
        expect(server.stop(), [], "the end")
        said = server.log()
        counts = [said.count(text) for text in (
            "not reloaded: tokens; what was read before stays: --token-file, line 1: scopes",
            "not reloaded: certificate; what was read before stays: --tls-cert and --tls-key are not")]
        expect(counts, [1, 1], "lines about bad files")
        expect((TOKEN in said, NEW_TOKEN in said), (False, False), "a token stands in the log")
    finally:
        server.clean_up()


# ---- Content-Encoding --------------------------------------------------------------------------
def encodings(binary):
    server = Server(binary, ["--data", "none", "--max-run-body", "1000000",
                             "--codecs", "tfserving,torchserve,sagemaker=m"]).start()
    try:
        graph = model("relu_neg_abs.fx.json")

        def ask(method, target, body, encoding, status, code=None):
            reply = server.call(method, target, body, [("Content-Encoding", encoding)])
            expect((reply.status, reply.code() if code else None), (status, code),
                   f"{method} with {encoding}")
            return reply

        ask("PUT", "/v1/graphs/m", gzip.compress(graph), "gzip", 201)
        ask("PUT", "/v1/graphs/m", zlib.compress(graph), "deflate", 200)  # the same content
        for encoding, squeeze in (("gzip", gzip.compress), ("x-gzip", gzip.compress), ("GZIP", gzip.compress),
                                  ("deflate", zlib.compress), ("identity", bytes)):
            reply = ask("POST", "/v1/graphs/m/run", squeeze(RUN), encoding, 200)
            expect(reply.json()["outputs"][0]["data"], [[1.5, 0], [3, 4]], "a run")
        ask("POST", "/v1/run", gzip.compress(b'{"graph": ' + graph + b', "inputs": {"x": [1.0]}}'),
            "gzip", 200)
        rows, large = b'{"instances": [[1.5, -2.0]]}', b"[" * 2 + b"1.0, " * 300000 + b"1.0]]"
        for method, target in (("POST", "/v1/models/m:predict"), ("POST", "/v1/models/m/versions/1:predict"),
                               ("POST", "/predictions/m"), ("PUT", "/predictions/m/1"),
                               ("POST", "/invocations"), ("POST", "/endpoints/m/invocations")):
            for encoding, squeeze in (("gzip", gzip.compress), ("deflate", zlib.compress)):
                reply = ask(method, target, squeeze(rows), encoding, 200)
                expect(reply.json(), {"predictions": [[1.5, 0]]}, f"{method} {target} with {encoding}")
                ask(method, target, squeeze(large), encoding, 413, "too_large")
        for encoding in ("br", "zstd", "gzip, gzip", "compress", ""):
            ask("POST", "/v1/graphs/m/run", RUN, encoding, 415, "wrong_encoding")
        reply = server.call("POST", "/v1/graphs/m/run", gzip.compress(RUN),
                            [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")])
        expect((reply.status, reply.code()), (415, "wrong_encoding"), "two headers")
        whole = gzip.compress(RUN)
        for bad in (b"no gzip", whole[:-1], whole[:20], whole + b"x", whole[:-8] + bytes(8),
                    zlib.compress(RUN)):
            ask("POST", "/v1/graphs/m/run", bad, "gzip", 400, "malformed")
        # The limits hold for what comes out: just as much, one byte more, and a bomb.
        fits = RUN + b" " * (1000000 - len(RUN))
        random.seed(1)
        noise = bytes(random.choice(b" \t\n") for _ in range(80000))
        padded = RUN + noise + b" " * (1000000 - len(RUN) - len(noise))
        ask("POST", "/v1/graphs/m/run", gzip.compress(padded), "gzip", 200)
        ask("POST", "/v1/graphs/m/run", gzip.compress(padded + b" "), "gzip", 413, "too_large")
        # more than a hundred times what was sent
        ask("POST", "/v1/graphs/m/run", gzip.compress(fits), "gzip", 413, "too_large")
        ask("POST", "/v1/graphs/m/run", gzip.compress(bytes(50 << 20)), "gzip", 413, "too_large")
        ask("POST", "/v1/graphs/m/run", RUN, "identity", 200)
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- replies with gzip -------------------------------------------------------------------------
WANTS_GZIP = {"gzip": True, "GZIP": True, "x-gzip": True, "deflate, gzip": True, "gzip; q=0.001": True,
              "*": True, "br;q=1.0, gzip;q=0.8, *;q=0.1": True, "identity;q=0.5, gzip;q=0.5": True,
              "gzip;q=0": False, "*;q=0": False, "identity": False, "identity, gzip;q=0.9": False,
              "br, deflate": False, "gzip;q=0, *": False, "": False, "gzipped": False}


def plain(reply):
    """The body as it was meant, and whether it came with gzip; Failed if the headers do not fit
    it."""
    packed = reply.header("Content-Encoding") == "gzip"
    if (reply.header("Content-Encoding") not in (None, "gzip")
        or int(reply.header("Content-Length")) != len(reply.body)):
        raise Failed(f"headers of a reply: {reply.headers}")
    return gzip.decompress(reply.body) if packed else reply.body, packed


def packed_replies(binary):
    server = Server(binary, ["--data", "none", "--quiet", "--no-inline"]).start()
    try:
        server.call("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
        random.seed(3)
        large = json.dumps({"inputs": {"x": [random.random() for _ in range(20000)]}}).encode()
        whole = server.call("POST", "/v1/graphs/m/run", large)
        expect((plain(whole)[1], whole.header("Vary"), len(whole.body) > 65536),
               (False, "Accept-Encoding", True), "without Accept-Encoding")
        for text, wanted in WANTS_GZIP.items():
            reply = server.call("POST", "/v1/graphs/m/run", large, [("Accept-Encoding", text)])
            body, packed = plain(reply)
            expect((reply.status, packed, reply.header("Vary")), (200, wanted, "Accept-Encoding"),
                   f"Accept-Encoding: {text}")
            expect(json.loads(body)["outputs"], whole.json()["outputs"], "the outputs")
            if wanted and len(reply.body) > 0.6 * len(body):
                raise Failed(f"{len(body)} bytes became {len(reply.body)}")
        expect(plain(server.call("POST", "/v1/graphs/m/run", large,
                                 [("Accept-Encoding", "br"), ("Accept-Encoding", "gzip")]))[1], True,
               "two fields")
        accepts = [("Accept-Encoding", "gzip")]
        for target, body, what in (("/v1/graphs/m/run?as=npy", large, "npy"),
                                   ("/v1/graphs/m/run?as=npz", large, "npz"),
                                   ("/v1/graphs/m/run", RUN, "a small run"),
                                   ("/v1/graphs/m/run", b'{"inputs": {"z": [1]}}', "a failure")):
            reply = server.call("POST", target, body, accepts)
            expect((plain(reply)[1], reply.header("Vary")), (False, None), what)
        ops = server.call("GET", "/v1/ops", None, accepts)
        expect((plain(ops)[1], len(plain(ops)[0]) > 5 * len(ops.body)), (True, True), "the list of operators")
        expect(plain(ops)[0], server.call("GET", "/v1/ops").body, "the list of operators")
        head = server.call("HEAD", "/v1/ops", None, accepts)
        expect((head.header("Content-Encoding"), head.header("Content-Length")),
               ("gzip", str(len(ops.body))), "HEAD")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


def packed_tags(binary):
    """A packed reply has a tag of its own: caches keep the two apart, and both speak of the same
    graph."""
    server = Server(binary, ["--data", "none", "--quiet", "--gzip-from", "64"]).start()
    graph, accepts = model("relu_neg_abs.fx.json"), [("Accept-Encoding", "gzip")]

    def get(*headers):
        reply = server.call("GET", "/v1/graphs/m/text", None, list(headers))
        return reply.status, reply.header("ETag"), reply.header("Content-Encoding"), reply.header("Vary")

    try:
        tag = server.call("PUT", "/v1/graphs/m", graph, accepts).header("ETag")
        packed = tag[:-1] + '-gzip"'
        expect(get(), (200, tag, None, "Accept-Encoding"), "a plain reply")
        expect(get(*accepts), (200, packed, "gzip", "Accept-Encoding"), "a packed reply")
        expect(get(("If-None-Match", tag)), (304, tag, None, "Accept-Encoding"), "who has the plain one")
        expect(get(("If-None-Match", tag), *accepts), (304, tag, None, "Accept-Encoding"),
               "who has the plain one and takes both")
        expect(get(("If-None-Match", packed), *accepts), (304, packed, None, "Accept-Encoding"),
               "who has the packed one")
        expect(get(("If-None-Match", "W/" + packed), *accepts), (304, packed, None, "Accept-Encoding"),
               "who compares weakly")
        expect(get(("If-None-Match", packed)), (200, tag, None, "Accept-Encoding"),
               "who has the packed one and does not take it now")
        expect(get(("If-None-Match", tag[:-1] + '-zip"'), *accepts)[0], 200, "another tag")
        for name, status in ((tag, 200), (packed, 200), ("W/" + packed, 412),
                             (tag[:-1] + '-gzip-gzip"', 412)):
            expect(server.call("PUT", "/v1/graphs/m", graph, [("If-Match", name)]).status, status,
                   f"If-Match: {name}")
        expect(server.call("PUT", "/v1/graphs/m", graph, [("If-None-Match", packed)]).status, 412,
               "If-None-Match of a PUT")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- tokens appear nowhere ---------------------------------------------------------------------
def secrecy(binary):
    server = Server(binary, ["--data", "none"])
    path = os.path.join(server.folder, "tokens")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{TOKEN} read\n")
    server.flags += ["--token-file", path]
    try:
        server.start()
        for value in (f"Bearer {TOKEN}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
            for target in ("/v1", "/nothing", "/v1/graphs/x/run"):
                reply = server.call("GET", target, headers=[("Authorization", value)])
                if TOKEN.encode() in reply.body:
                    raise Failed("a reply holds the token")
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
            expect(TOKEN.encode() in file.read(), False, "the token stands in the command line")
        expect(server.stop(), [], "the end")
        expect(TOKEN in server.log(), False, "the token stands in the log")
    finally:
        server.clean_up()


# ---- scopes and routes -------------------------------------------------------------------------
NO_TOKEN_NEEDED = {"/", "/web/{file}", "/livez", "/readyz", "/healthz", "/v2/health/live", "/v2/health/ready",
                   "/ping"}
SCOPES = ("read", "run", "write", "admin")


def scope_of(method, path):
    """What a route should want, said here once more and apart from the program: looking, running,
    or changing what is stored."""
    if path in NO_TOKEN_NEEDED:
        return None
    if path == "/v1/events":
        return "admin"
    if "/sessions" in path:
        return "run"  # its state is of those who run graphs
    # what a transform is to store needs more
    if method in ("GET", "HEAD") or path.endswith(("/transform", "/index")):
        return "read"
    if path in ("/v2/logging", "/v2/trace/setting"):
        return "admin"
    if path.startswith("/predictions"):
        return "run"
    runs = path.endswith(("/run", "/infer", ":predict", "/invocations")) or path == "/v1/compare"
    return "run" if method == "POST" and runs else "write"


def scopes(binary):
    """Every route of the server's own list, with every scope, with a wrong token and with none;
    what there is not, and a method that a path lacks."""
    server = Server(binary, ["--data", "none", "--quiet", "--max-wrong-tokens", "1000000",
                             "--codecs", CODECS])
    path = os.path.join(server.folder, "tokens")
    tokens = {scope: f"{scope}-token-of-the-test-0123456789" for scope in SCOPES}
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{token} {scope}\n" for scope, token in tokens.items())
    server.flags += ["--token-file", path]
    try:
        server.start()
        document = server.call("GET", "/openapi.json", headers=bearer(tokens["read"])).json()
        told = [(method.upper(), route) for route, methods in document["paths"].items()
                for method in methods if method != "parameters"]
        expect(sorted(told), sorted((method, path) for _, method, path, _ in routes()),
               "the routes of /openapi.json")
        told += [("HEAD", route) for method, route in told if method == "GET"]
        wrong, n = [], 0
        for method, route in told + [("GET", "/nothing"), ("DELETE", "/v1/ops")]:
            wanted = ("read" if route == "/nothing" or (method, route) == ("DELETE", "/v1/ops")
                      else scope_of(method, route))
            target = re.sub(r"\{\w+\}", "1", route) + ("?seconds=1" if route == "/v1/events" else "")
            for scope, token in [(None, None), ("wrong", tokens["admin"] + "x"), *tokens.items()]:
                with server.connect() as connection:
                    body = None if method in ("GET", "HEAD", "DELETE") else b"{}"
                    connection.request(method, target, body, bearer(token) if token else [])
                    status = connection.reply().status
                opens = wanted is None or scope in (wanted, "admin")
                allowed = status not in (401, 403) if opens else status == (403 if scope in SCOPES else 401)
                n += 1
                if not allowed:
                    wrong.append(f"{method} {route} with {scope or 'no'} token: {status}")
        expect(wrong, [], "scopes and routes")
        if n < 6 * 40:
            raise Failed(f"{n} combinations only")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- clients that leave ------------------------------------------------------------------------
def metric(server, name):
    found = re.search(rf"^{name} (\S+)$", server.call("GET", "/metrics").body.decode(), re.M)
    return float(found[1]) if found else None


def leaving(binary):
    server = Server(binary, ["--data", "none", "--quiet"]).start()
    random.seed(7)
    try:
        server.call("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
        big = json.dumps({"inputs": {"x": [[1.0] * 1000] * 100}}).encode()
        head = b"POST /v1/graphs/m/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        for n in range(400):
            body = big if n % 2 else RUN
            data = head % len(body) + body
            client = socket.create_connection(("127.0.0.1", server.port), 5)
            client.sendall(data[:random.randrange(len(data) + 1)] if n % 3 else data)
            if n % 4 == 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # RST
            if n % 5 == 0:
                time.sleep(random.random() * 0.01)
            client.close()
        for _ in range(200):
            state = (metric(server, "fxserve_running"), metric(server, "fxserve_queue_depth"),
                     metric(server, "fxserve_connections"))
            if state[0] == 0 and state[1] == 0 and state[2] is not None and state[2] <= 1:
                break
            time.sleep(0.05)
        expect(state[:2], (0, 0), "requests that are left")
        if state[2] is None or state[2] > 1:
            raise Failed(f"{state[2]} connections are left")
        expect(server.call("POST", "/v1/graphs/m/run", RUN).status, 200, "after that")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- clients that do not read ------------------------------------------------------------------
def slow_reader(binary):
    server = Server(binary, ["--data", "none", "--quiet", "--body-grace-s", "1", "--min-body-rate", "1000000",
                             "--idle-timeout-s", "60"]).start()
    try:
        server.call("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
        body = json.dumps({"inputs": {"x": [1.25] * 3000000}}).encode()
        reply = server.call("POST", "/v1/graphs/m/run", body)
        expect((reply.status, len(reply.json()["outputs"][0]["data"])), (200, 3000000), "a client that reads")
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(20)
            client.connect(("127.0.0.1", server.port))
            client.sendall(b"POST /v1/graphs/m/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                           % len(body) + body)
            n, end = 0, time.monotonic() + 20
            try:
                while more := client.recv(1000):
                    n += len(more)
                    time.sleep(0.05)
                    if time.monotonic() > end:
                        raise Failed("a client that takes 20 kB/s is still served")
            except ConnectionResetError:
                pass
            if n >= len(reply.body):
                raise Failed("the client read everything: nothing was tested")
        expect(server.call("GET", "/livez").status, 200, "after that")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- on the loop thread or on a worker ---------------------------------------------------------
def here_or_there(binary):
    answers = []
    for flags in ([], ["--no-inline"]):
        server = Server(binary, ["--data", "none", "--quiet", *flags]).start()
        try:
            server.call("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
            server.call("POST", "/v1/graphs/m/run?mode=compiled", RUN)
            rows = []
            with server.connect() as connection:
                for n in range(60):
                    body = RUN + b" " * ((len(RUN), 4095, 4096, 4097)[n % 4]
                                         - len(RUN)) if n % 5 else b'{"inputs": {"y": [1]}}'
                    target = f"/v1/graphs/m/run{('', '?mode=eager', '?mode=compiled', '?as=npy')[n // 4 % 4]}"
                    connection.request("POST", target, body, [("X-Request-Id", f"r{n}")])
                    reply = connection.reply()
                    rows.append((reply.status, reply.body))
            answers.append(rows)
            expect(sum(status == 200 for status, _ in rows), 48, "runs that are well")
            expect(metric(server, "fxserve_running"), 0, "requests that are left")
            expect(server.call("GET", "/v1/profiles/r1").status, 200, "a run's profile")
            expect(server.stop(), [], "the end")
        finally:
            server.clean_up()
    expect(answers[0] == answers[1], True, "the same answers with and without --no-inline")


def guarded(n_guards):
    leaves, value = {"tuple": ["*"]}, {"dtype": "float32", "shape": ["s0"]}
    nodes = [{"op": "placeholder", "name": "x", "target": "x", "meta": value},
             {"op": "call_function", "name": "y", "target": "torch.neg", "args": ["%x"]},
             {"op": "output", "args": [{"$tuple": ["%y"]}]}]
    signature = {"inputs": [{"kind": "user", "type": "Tensor"}], "outputs": [{"kind": "user"}],
                 "in_tree": {"tuple": [leaves, {"dict": {}}]}, "out_tree": leaves,
                 "argument_names": ["x"], "guards": ["L['x'].size()[0] > 1"] * n_guards}
    return json.dumps({"format": "fx/1", "nodes": nodes, "signature": signature}).encode()


def guards_elsewhere(binary):
    """Runs that wait in no queue were done on the loop thread: none whose guards take long."""
    server = Server(binary, ["--data", "none", "--quiet"]).start()
    run = json.dumps({"inputs": {"x": [1.0, 2.0]}}).encode()
    try:
        for n_guards in (1, 20000):
            expect(server.call("PUT", "/v1/graphs/m", guarded(n_guards)).status, 201, "an upload")
            server.call("POST", "/v1/graphs/m/run?mode=compiled", run)
            replies = [server.call("POST", "/v1/graphs/m/run", run) for _ in range(20)]
            expect({reply.status for reply in replies}, {200}, "the runs")
            here = sum("queue;dur=0.000" in reply.header("Server-Timing") for reply in replies)
            expect(here > 0, n_guards == 1, f"runs on the loop thread with {n_guards} guards ({here})")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# ---- much of nothing ---------------------------------------------------------------------------
def nothing(binary):
    server = Server(binary, ["--data", "none", "--quiet"]).start()
    try:
        server.call("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
        for text in (b"{},", b"[[[[[[[[", b'"",', b'{"a":'):
            body = b'{"inputs": {"x": [' + text * ((8 << 20) // len(text)) + b"1]}}"
            reply = server.call("POST", "/v1/graphs/m/run", body)
            if reply.status not in (400, 413):
                raise Failed(f"8 MB of {text!r}: {reply.short()[:300]}")
        # A graph of more values than a graph may have is given up there, not at its end.
        body = b'{"graph": {"format": "fx/1", "nodes": [' + b"{}," * (5 << 20) + b"{}]}}"
        reply = server.call("POST", "/v1/run", body)
        expect((reply.status, "values" in reply.json()["error"]), (413, True), "15 MB of {} in a graph")
        expect(server.call("GET", "/livez").status, 200, "after that")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# A graph that comes along with a deadline is given up before its end, where it is wrong.
def deadlines(binary):
    server = Server(binary, ["--data", "none", "--quiet"]).start()
    try:
        nodes = b'{"op": "placeholder", "target": "x", "name": "x"}, ' * 50000
        graph = b'"graph": {"format": "fx/1", "nodes": [' + nodes + b'{"op": "none"}]}'
        for path, before, status in (("/v1/run", b"", 400), ("/v1/run?deadline_ms=1", b"", 504),
                                     ("/v1/run", b'"deadline_ms": 1, ', 504),
                                     ("/v1/run?deadline_ms=0", b"", 400),
                                     ("/v1/run", b'"deadline_ms": 0.5, ', 400)):
            reply = server.call("POST", path, b"{" + before + graph + b', "inputs": {"x": [1.0]}}')
            expect(reply.status, status, f"a wrong graph of {len(graph)} bytes to {path} {before!r}")
            times = sum(key == "Server-Timing" for key, _ in reply.headers)
            expect(times <= 1, True, f"one Server-Timing, not {times}")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


# Texts of a body count towards the memory of its run.
def long_texts(binary):
    server = Server(binary, ["--data", "none", "--quiet", "--max-run-memory", "16MiB"]).start()
    try:
        server.call("PUT", "/v1/graphs/m", model("relu_neg_abs.fx.json"))
        for path, head, tail in (("/v1/graphs/m/run", b'{"inputs": {"', b'": 1}}'),
                                 ("/v2/models/m/infer", b'{"inputs": [{"name": "', b'"}]}')):
            for n_bytes, status in ((4096, 400), (24 << 20, 413)):
                reply = server.call("POST", path, head + b"k" * n_bytes + tail)
                expect(reply.status, status, f"a name of {n_bytes} bytes to {path}")
            expect("--max-run-memory" in reply.body.decode(), True,
                   f"the limit's name: {reply.short()[:300]}")
        expect(server.stop(), [], "the end")
    finally:
        server.clean_up()


def main():
    if len(sys.argv) != 2:
        print("usage: door.py FXSERVE")
        return 2
    tally = Tally()
    for name, check in (("HTTPS", https), ("commands over HTTPS", commands_over_https),
                        ("files that change under a running server", reloading),
                        ("Content-Encoding", encodings), ("replies with gzip", packed_replies),
                        ("tags of replies with gzip", packed_tags), ("tokens appear nowhere", secrecy),
                        ("request ids", request_ids), ("scopes and routes", scopes),
                        ("clients that leave", leaving), ("clients that do not read", slow_reader),
                        ("on the loop thread or on a worker", here_or_there),
                        ("guards that take long are not checked on the loop thread", guards_elsewhere),
                        ("much of nothing", nothing), ("deadlines of graphs that come along", deadlines),
                        ("long texts", long_texts)):
        try:
            check(sys.argv[1])
            tally.check(name, "")
        except Failed as error:
            tally.check(name, str(error)[:2000])
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
