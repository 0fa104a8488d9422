# SPDX-License-Identifier: Apache-2.0
"""Raw HTTP probes: probes.py FXSERVE [NAME]. Bytes no HTTP library would send, and how many
requests we see in them.

Each probe (probe_cases.py) has a connection of its own: its bytes, what RFC 9112 and 9110 want, the
statuses that must come back in order, and whether the server then closes the connection. No probe
may bring one reply more than listed: that would be a smuggled request. Then the same bytes go
through nginx (Debian's package) with fxserve behind it: both must have counted the same number of
requests. Without nginx this second half is left out, and said so. A request that nginx gave up in
its middle (it sends bodies on as they come) is none, and is logged here as 499.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from probe_cases import PROBES
from service import END_WITH_PARENT, ROOT, Connection, Failed, Server, Tally

CONFIG = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format seen '$request_method $upstream_status'; access_log {folder}/access.log seen;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream fxserve {{ server 127.0.0.1:{behind}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://fxserve; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_set_header Connection ""; proxy_set_header Host $http_host;
    }}
  }}
}}
"""


def connect(port):
    return Connection(port, 5)


def ask(port, probe):
    """The statuses that come back, and whether the connection is closed behind them."""
    with connect(port) as connection:
        for method in probe.methods:
            connection.methods.append(method)
        for piece in probe.pieces:
            connection.send(piece)
            if len(probe.pieces) > 1:
                time.sleep(0.05)
        statuses = []
        try:
            while len(statuses) < len(probe.statuses):
                statuses.append(connection.reply().status)
            if probe.closed:
                if not connection.closed():
                    statuses.append("more bytes")
            else:
                connection.request("GET", "/livez")
                statuses.append(connection.reply().status)
        except Failed as error:
            statuses.append(str(error))
        return statuses


def direct(server, tally, probes):
    for probe in probes:
        want = list(probe.statuses) + ([] if probe.closed else [200])
        got = ask(server.port, probe)
        tally.check(probe.name, "" if got == want else f"{got}, expected {want}\n"
                    f"  sent {b''.join(probe.pieces)[:200]!r}\n  the RFC: {probe.rfc}")


# ---- behind nginx ------------------------------------------------------------------------------
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lines_of(path, has):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return sum(has(line) for line in file if line.endswith("\n"))
    except FileNotFoundError:
        return 0


def through_nginx(server, tally, probes, program):
    with tempfile.TemporaryDirectory(prefix="fxserve-nginx-") as folder:
        port = free_port()
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=folder, port=port, behind=server.port))
        nginx = subprocess.Popen([program, "-p", folder, "-c", path, "-e", os.path.join(folder, "error.log")],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 preexec_fn=END_WITH_PARENT)
        try:
            for _ in range(100):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)

            def counts():
                answered = lines_of(os.path.join(folder, "access.log"), lambda line: line.split()[-1] != "-")
                logged = lines_of(server.log_path,
                                  lambda line: '"route"' in line and '"status": 499' not in line)
                return answered, logged

            for probe in probes:
                agree(tally, probe, port, counts)
        finally:
            nginx.terminate()
            nginx.wait()


def agree(tally, probe, port, counts):
    before = counts()
    with connect(port) as connection:
        for piece in probe.pieces:
            connection.send(piece)
            if len(probe.pieces) > 1:
                time.sleep(0.05)
        connection.socket.settimeout(0.2)
        try:
            while connection.socket.recv(1 << 16):
                pass
        except OSError:
            pass
    for _ in range(40):
        now = counts()
        forwarded, seen = now[0] - before[0], now[1] - before[1]
        if forwarded == seen:
            time.sleep(0.02)
            if counts() == now:
                break
        time.sleep(0.05)
    tally.check(f"{probe.name}, behind nginx",
                "" if forwarded == seen else f"nginx passed on {forwarded} requests, fxserve saw {seen}")


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: probes.py FXSERVE [NAME]")
        return 2
    probes = [probe for probe in PROBES if len(sys.argv) == 2 or sys.argv[2] in probe.name]
    tally = Tally()
    server = Server(sys.argv[1], ["--data", "none", "--log-format", "json"]).start()
    try:
        direct(server, tally, probes)
        program = shutil.which("nginx") or shutil.which(
            "nginx", path=f"/usr/sbin:/usr/local/sbin:{ROOT}/build-tools/nginx/usr/sbin")
        if program is None:
            print("nginx is not there (./check unpacks it): the comparison with it is left out")
        else:
            through_nginx(server, tally, probes, program)
        tally.check("the server is well", "\n".join(server.stop()))
    finally:
        server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
