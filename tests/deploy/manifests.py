# SPDX-License-Identifier: Apache-2.0
"""What stands in ../../deploy fits the program. manifests.py FXSERVE

Every file parses; every flag and FXSERVE_ variable used is one that `fxserve --help=markdown`
lists; every metric named in dashboard, alerts and scaling is on /metrics, with the labels it is
asked for; probes ask routes that exist, on the port the image serves, within a grace that outlasts
the drain; all budgets together, as the table of docs/operations.md adds them up, stay below the
memory limit, and no model that may be uploaded exceeds the memory of graphs; promtool and systemd-
analyze, where installed, agree.
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from operations import promtool, read_metrics
from service import ROOT, Failed, Server, Tally, routes

DEPLOY = os.path.join(ROOT, "deploy")
METRIC_NAME = re.compile(r"\b((?:fxserve|process)_[a-z_]+)\b")


def files(*endings):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(DEPLOY) for name in names
                  if name.endswith(endings))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def documents(path):
    import yaml
    try:
        return [document for document in yaml.safe_load_all(read(path)) if document is not None]
    except yaml.YAMLError as error:
        raise Failed(f"{path}: {error}") from None


def have_yaml():
    try:
        import yaml  # noqa: F401
        return True
    except ImportError:
        print("no PyYAML: what needs it is left out")
        return False


class Program:
    def __init__(self, binary):
        table = subprocess.run([binary, "--help=markdown"], capture_output=True, text=True, check=True).stdout
        rows = re.findall(r"^\| `--([a-z0-9-]+)(?: [^`]+)?` \| `(FXSERVE_\w+)` \| `?([^|`]*)`? \|",
                          table, re.M)
        self.flags, self.variables = {row[0] for row in rows}, {row[1]: row[2].strip() for row in rows}
        token = "token-of-the-deployment-test"
        server = Server(binary, ["--data", "data"])
        with open(os.path.join(server.folder, "tokens"), "w", encoding="utf-8") as file:
            file.write(f"{token} admin\n")
        server.flags += ["--token-file", "tokens"]
        server.start()

        def ask(*request):
            return server.call(*request, headers=[("Authorization", f"Bearer {token}")])

        try:
            relu = (b'{"graph": {"format": "fx/1", "nodes": [{"op": "placeholder", "name": "x", "target": '
                    b'"x"}, {"op": "output", "name": "output", "target": "output", "args": ["%x"]}]},'
                    b' "inputs": {"x": [1.5]}}')
            if ask("POST", "/v1/run", relu).status != 200:
                raise Failed("the server does not run a graph")
            ask("POST", "/v1/run", relu.replace(b'"x": [', b'"y": ['))
            self.metrics = read_metrics(ask("GET", "/metrics").body.decode())
            self.routes = {path for _, method, path, _ in routes() if method == "GET"}
            if server.stop():
                raise Failed("the server does not end well")
        finally:
            server.clean_up()

    def samples(self):
        """{sample name: its labels}"""
        # a certificate's, and the like: not here and now
        out = {name: set() for name, rows in self.metrics.items() if not rows}
        for rows in self.metrics.values():
            for name, labels, _ in rows:
                out.setdefault(name, set()).update(labels)
        return out


def check_flags(program):
    unknown = []
    for path in files("") + [os.path.join(ROOT, "Dockerfile"), os.path.join(ROOT, "docs", "operations.md"),
                             os.path.join(ROOT, "docs", "security.md")]:
        text = read(path)
        unknown += [f"{os.path.relpath(path, ROOT)}: {name}"
                    for name in set(re.findall(r"\bFXSERVE_[A-Z_]+\b", text)) - set(program.variables)]
        if not path.endswith(("build-image", "collect-files", "release", "Dockerfile", "compose.yaml")):
            used = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text))
            unknown += [f"{os.path.relpath(path, ROOT)}: --{name}" for name in used - program.flags
                        - {"version", "from-file", "now", "rm", "help", "root", "build", "profile", "input"}]
    if unknown:
        raise Failed("no such flags: " + ", ".join(sorted(unknown)))


def expressions():
    """(place, PromQL) of dashboard, alerts and scaling."""
    dashboard = json.loads(read("deploy/grafana/dashboard.json"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids) or not ids:
        raise Failed("the dashboard's panels have no ids of their own")
    taken = set()
    for panel in dashboard["panels"]:
        box = panel["gridPos"]
        cells = {(x, y) for x in range(box["x"], box["x"] + box["w"])
                 for y in range(box["y"], box["y"] + box["h"])}
        if cells & taken:
            raise Failed(f"panel {panel['title']} lies on another one")
        taken |= cells
        if box["x"] + box["w"] > 24 or not panel["targets"]:
            raise Failed(f"panel {panel['title']} does not fit, or shows nothing")
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for found in re.finditer(r"^\s+expr: (.*)$", read("deploy/prometheus/alerts.yaml"), re.M):
        yield "alert", found[1]
    for path in files(".yaml"):
        for found in re.finditer(r"(?:metric: \{name: |seriesQuery: ')(\w+)", read(path)):
            yield os.path.relpath(path, ROOT), found[1]


def check_metrics(program):
    samples, problems, n = program.samples(), [], 0
    outer = {"instance", "job", "namespace", "pod"}
    for place, text in expressions():
        names = METRIC_NAME.findall(text)
        n += len(names)
        problems += [f"{place}: {name} is not on /metrics" for name in names if name not in samples]
        known = set().union(*(samples.get(name, set()) for name in names)) | outer
        asked = set(re.findall(r"(\w+)(?:=~|!=|!~|=)\"", text)) | {
            label.strip() for group in re.findall(r"\bby \(([^)]*)\)", text) for label in group.split(",")}
        problems += [f"{place}: no label {label} in {text}" for label in asked - known]
        if text.count("(") != text.count(")"):
            problems.append(f"{place}: brackets in {text}")
    if problems or n < 30:
        raise Failed(f"{n} metrics named; " + "; ".join(problems))


def check_alerts(_program):
    """The alerts fire whatever the job is called, also when no server is there at all, and know
    what they speak of."""
    rules = re.findall(r"- alert: (\w+)\n\s+expr: (.*)\n", read("deploy/prometheus/alerts.yaml"))
    named = [name for name, text in rules if re.search(r"\bjob\s*(=~|!=|!~|=)", text)]
    split = [name for name, text in rules if re.search(r"\bby \((?!job, instance\b)", text)]
    if named or split or len(rules) < 15:
        raise Failed(f"{len(rules)} alerts; tied to a job's name: {named}; without job and instance in their "
                     f"sums: {split}")
    if (not any(text.startswith("absent(") for _, text in rules)
        or not any(re.match(r"up == 0 and on \(job, instance\)", text) for _, text in rules)):
        raise Failed("no alert says that a server, or every server, is gone")
    kept = {"tls_certificate_expiry_timestamp_seconds", "file_stale", "data_free_bytes",
            "queue_wait_seconds_bucket"}
    missing = [name for name in kept if not any(f"fxserve_{name}" in text for _, text in rules)]
    if missing:
        raise Failed(f"no alert looks at {missing}")


def containers(path):
    for document in documents(path):
        if document["kind"] == "Deployment":
            pod = document["spec"]["template"]["spec"]
            for container in pod["containers"]:
                yield document, pod, container


UNITS = {"": 1, "m": 1e-3, "g": 1 << 30, "Gi": 1 << 30, "Mi": 1 << 20}


def quantity(text):
    number, unit = re.fullmatch(r"([\d.]+)(\w*)", str(text)).groups()
    return float(number) * UNITS[unit]


def budgets(program):
    """(variable, factor, whether it is for each worker and one) of the table under Memory in
    docs/operations.md."""
    rows = re.findall(r"^  \| ([^|]+) \| `--([a-z-]+)` \| (?:(\d) × )?(\d+(?: [GM]iB)?) \|$",
                      read("docs/operations.md"), re.M)
    for what, flag, factor, default in rows:
        variable = "FXSERVE_" + flag.upper().replace("-", "_")
        number, _, unit = default.partition(" ")
        if int(program.variables[variable]) != quantity(number + unit.removesuffix("B")):
            raise Failed(f"docs/operations.md: --{flag} is not {default} by default")
        yield variable, int(factor or 1), "times the workers and one" in what
    if len(rows) < 10:
        raise Failed(f"docs/operations.md: {len(rows)} budgets under Memory")


def check_memory(path, program, settings, cpus, memory):
    workers, most = int(settings.get("FXSERVE_WORKERS", max(1, int(quantity(cpus))))), 20000000
    for variable, factor, is_of_workers in budgets(program):
        most += (int(settings.get(variable, program.variables[variable])) * factor
                 * (workers + 1 if is_of_workers else 1))
    if most > quantity(memory):
        raise Failed(f"{path}: budgets of {most} bytes, with {workers} workers, in a limit of {memory}")


def check_large_models(path, settings, arguments):
    """Without a data folder the largest model is set, and fits into the memory of graphs."""
    if "none" in arguments and not (268435456 < int(settings.get("FXSERVE_MAX_UPLOAD", 0))
                                    <= int(settings["FXSERVE_MAX_GRAPH_MEMORY"])):
        raise Failed(f"{path}: FXSERVE_MAX_UPLOAD is not above 256 MiB, or above FXSERVE_MAX_GRAPH_MEMORY")


def check_kubernetes(program):
    port, n = int(re.search(r"^EXPOSE (\d+)$", read("Dockerfile"), re.M)[1]), 0
    for path in files(".yaml"):
        if "/kubernetes/" not in path:
            continue
        names = {}
        for document in documents(path):
            names.setdefault(document["kind"], []).append(document["metadata"]["name"])
        for document, pod, container in containers(path):
            n += 1
            settings = {row["name"]: row["value"] for row in container["env"]}
            drain = int(settings["FXSERVE_DRAIN_DELAY"]) + int(settings["FXSERVE_DRAIN_S"])
            if pod["terminationGracePeriodSeconds"] <= drain:
                raise Failed(f"{path}: the grace of {pod['terminationGracePeriodSeconds']} s ends before "
                             f"the drain of {drain} s")
            if container["ports"][0]["containerPort"] != port:
                raise Failed(f"{path}: not the image's port {port}")
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if container[probe]["httpGet"]["path"] not in program.routes:
                    raise Failed(f"{path}: {probe} asks {container[probe]['httpGet']['path']}")
            security = container["securityContext"]
            if not (pod["securityContext"]["runAsNonRoot"] and security["readOnlyRootFilesystem"]
                    and security["capabilities"]["drop"] == ["ALL"]
                    and not security["allowPrivilegeEscalation"]):
                raise Failed(f"{path}: the container has rights it does not need")
            if "PersistentVolumeClaim" in names and document["spec"]["strategy"]["type"] != "Recreate":
                raise Failed(f"{path}: two servers would share a data folder")
            limits = container["resources"]["limits"]
            check_memory(path, program, settings, limits["cpu"], limits["memory"])
            check_large_models(path, settings, container.get("args", []))
            mounts = {row["name"] for row in container["volumeMounts"]}
            if mounts != {row["name"] for row in pod["volumes"]}:
                raise Failed(f"{path}: volumes and mounts differ")
            if (document["spec"]["selector"]["matchLabels"].items()
                - document["spec"]["template"]["metadata"]["labels"].items()):
                raise Failed(f"{path}: the selector does not choose the pods")
        for scaler in (document for document in documents(path)
                       if document["kind"] == "HorizontalPodAutoscaler"):
            if scaler["spec"]["scaleTargetRef"]["name"] not in names["Deployment"]:
                raise Failed(f"{path}: the scaler's target is not there")
    if n != 2:
        raise Failed(f"{n} containers, expected 2")


def check_kserve(program):
    container, = documents("deploy/kserve/runtime.yaml")[0]["spec"]["containers"]
    settings = {row["name"]: row["value"] for row in container["env"]}
    limits = container["resources"]["limits"]
    check_memory("deploy/kserve/runtime.yaml", program, settings, limits["cpu"], limits["memory"])
    check_large_models("deploy/kserve/runtime.yaml", settings, container["args"])


def check_network(_program):
    """The policy is for the pods that there are, opens the image's port only, names who may come,
    and lets nothing out."""
    port = int(re.search(r"^EXPOSE (\d+)$", read("Dockerfile"), re.M)[1])
    chosen = [document["spec"]["template"]["metadata"]["labels"]["app"] for path in files(".yaml")
              if "/kubernetes/" in path for document in documents(path) if document["kind"] == "Deployment"]
    policy, = documents("deploy/kubernetes/network.yaml")
    spec = policy["spec"]
    rule, = spec["podSelector"]["matchExpressions"]
    if (rule["key"], rule["operator"], sorted(rule["values"])) != ("app", "In", sorted(chosen)):
        raise Failed(f"the policy is for {rule}, the pods are {chosen}")
    if sorted(spec["policyTypes"]) != ["Egress", "Ingress"] or spec["egress"] or not spec["ingress"]:
        raise Failed("the policy does not speak of both directions, or lets something out")
    for row in spec["ingress"]:
        if not row["from"] or not all(row["from"]) or [(entry["protocol"], entry["port"])
                                                       for entry in row["ports"]] != [("TCP", port)]:
            raise Failed(f"the policy opens more than port {port} to those it names: {row}")


def check_compose(program):
    document = documents("deploy/compose.yaml")[0]
    service = document["services"]["fxserve"]
    provider = documents("deploy/grafana/dashboards.yaml")[0]["providers"][0]["options"]["path"]
    if not any(f":{provider}/" in volume for volume in document["services"]["grafana"]["volumes"]):
        raise Failed(f"no dashboard is where Grafana looks for them: {provider}")
    if (not service["read_only"] or service["cap_drop"] != ["ALL"]
        or "no-new-privileges:true" not in service["security_opt"]):
        raise Failed("the container has rights it does not need")
    check_memory("deploy/compose.yaml", program, service["environment"], service["cpus"],
                 service["mem_limit"])
    if not all(port.startswith("127.0.0.1:") for row in document["services"].values()
               for port in row["ports"]):
        raise Failed("a port is open to all while nothing checks who calls")
    kept = {"fxserve": "/data", "prometheus": "/prometheus", "grafana": "/var/lib/grafana"}
    for name, row in document["services"].items():
        targets = {volume.split(":")[1]: volume.split(":")[0] for volume in row["volumes"]}
        if targets.get(kept[name]) not in document["volumes"]:
            raise Failed(f"{name} keeps nothing: {kept[name]} is no volume")
        if (row["cap_drop"] != ["ALL"] or "no-new-privileges:true" not in row["security_opt"]
            or re.search(r":(latest)?$", row.get("image", "")) and name != "fxserve"):
            raise Failed(f"{name} has rights it does not need, or an image of no version")
        for volume in row["volumes"]:
            source = volume.split(":")[0]
            if source.startswith(".") and not os.path.exists(os.path.join(DEPLOY, source)):
                raise Failed(f"{source} is not there")
            if not source.startswith(".") and source not in document["volumes"]:
                raise Failed(f"volume {source} is not declared")


def check_prometheus(_program):
    for path in ("deploy/prometheus/alerts.yaml", "deploy/prometheus/prometheus.yaml",
                 "deploy/prometheus/adapter.yaml", "deploy/grafana/datasource.yaml",
                 "deploy/grafana/dashboards.yaml"):
        documents(path)
    program = promtool()
    if program is not None:
        for kind, path in (("check rules", "deploy/prometheus/alerts.yaml"),
                           ("check config", "deploy/prometheus/prometheus.yaml"),
                           ("test rules", "tests/deploy/alerts_test.yaml")):
            done = subprocess.run([program, *kind.split(), os.path.join(ROOT, path)], capture_output=True,
                                  text=True, check=False)
            if done.returncode != 0:
                raise Failed(done.stdout + done.stderr)


def check_unit(_program):
    text = read("deploy/fxserve.service")
    drain = re.search(r"FXSERVE_DRAIN_S=(\d+)", text)
    if int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M)[1]) <= int(drain[1]):
        raise Failed("systemd kills the server before its drain is over")
    if shutil.which("systemd-analyze") is None:
        return
    unit = os.path.join(DEPLOY, "fxserve.service")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20",
                           unit], capture_output=True, text=True, check=False)
    score = re.search(r"exposure level for fxserve.service: ([0-9.]+)", done.stdout)
    if done.returncode != 0 or not score or float(score[1]) > 2.0:
        raise Failed(f"systemd-analyze security: {done.stdout[-300:]} {done.stderr[-300:]}")
    print(f"systemd-analyze security: {score[1]}")


def check_scripts(_program):
    for path in ("deploy/build-image", "deploy/collect-files"):
        done = subprocess.run(["bash", "-n", os.path.join(ROOT, path)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 or not os.access(os.path.join(ROOT, path), os.X_OK):
            raise Failed(f"{path}: {done.stderr or 'not executable'}")


def main():
    if len(sys.argv) != 2:
        print("usage: manifests.py FXSERVE")
        return 2
    tally, program = Tally(), Program(os.path.abspath(sys.argv[1]))
    checks = [("flags and variables exist", check_flags), ("metrics and labels exist", check_metrics),
              ("alerts", check_alerts), ("systemd unit", check_unit), ("scripts", check_scripts)]
    if have_yaml():
        checks += [("Kubernetes", check_kubernetes), ("KServe", check_kserve),
                   ("network policy", check_network), ("compose", check_compose),
                   ("Prometheus", check_prometheus)]
    for name, check in checks:
        try:
            check(program)
            tally.ok()
        except (Failed, OSError, KeyError, ValueError, TypeError) as failure:
            tally.bad(name, failure if isinstance(failure, Failed) else repr(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
