# SPDX-License-Identifier: Apache-2.0
"""The house's rules that a machine can check. Prints one line per finding; the last line is `N
passed, N failed`.

  arrows     every #include points down (docs/ARCHITECTURE.md): server > api > core, and inside core
             room by room
  insides    no file of api sees a header of core/{program,passes,interp,compile}, through any other
  facade     server/ and library/ include of core only core/base and core/engine
  routes     no route's id outside its row (api/routes.def) and the tests
  operators  no operator's name in core outside core/ops and core/targets: passes ask for traits and
             roles (core/ops/op.h)
  positions  no argument's position as a number outside core/*/arguments.def
  expands    no body between compose_begin and compose_end returns after values were made: they would
             leak (core/ops/compose.h)
  headers    every header compiles alone
  budget     lengths of functions and files (.def tables and tests aside) and, in tests too, the
             number of parameters, as BUDGET below has them; CONTRIBUTING.md says the same numbers
  words      no goto, alloca, VLA pragma, unfinished-work marks, machine paths; no question to the CPU
             outside core/base/isa.c; every source starts with its SPDX line
  page       of web/: files and functions have the same lengths as those in C, lines <= 110, and no
             string can become markup or code (innerHTML, eval and their like)
  width      code <= 110 columns, comments <= 100, both outside of `clang-format off`; prose in .md
             < 100, tables and code aside
  format     clang-format 14 leaves every file as it is; left out with another version, which would
             lay out some macros differently
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Height of each room: an include may point to a lower height only, or stay in its own room.
HEIGHT = {
    "core/base": 0, "core/tensor": 1, "core/graph": 2, "core/kernels": 2, "core/ops": 3, "core/targets": 4,
    "core/edit": 5, "core/eval": 5, "core/program": 6, "core/passes": 7,
    "core/interp": 7, "core/compile": 8, "core/registry": 9, "core/store": 9, "core/profile": 9,
    "core/session": 9,
    "core/engine": 10, "api": 11, "api/formats": 12,
    "api/readers": 13, "api/run": 14, "api/routes": 15, "server": 16, "library": 16,
}
SYSTEM_ONLY_IN = {
    "microhttpd.h": ["server/transport.c"], "uv.h": ["server"], "jansson.h": ["api/routes"],
    "zlib.h": ["api/formats"],
    "spng.h": ["api/formats"], "jpeglib.h": ["api/formats"], "jerror.h": ["api/formats"],
    "nettle/sha2.h": ["core/base"], "omp.h": ["core/kernels"],
    "dnnl.h": ["core/kernels"],
}
FORBIDDEN = [
    (re.compile(r"\bgoto\b"), "goto"), (re.compile(r"\balloca\s*\("), "alloca"),
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b"), "a mark of unfinished work"),
]
# Rooms that see operators. Those below print and read Python's names of other things.
ABOVE_OPERATORS = {room for room, height in HEIGHT.items() if height > HEIGHT["core/targets"]}
# The one place of these numbers: of lines, and of parameters.
BUDGET = {"functions": {"most": 70, "median": 11, "p90": 26, "parameters": 6},
          "files": {"most": 700, "median": 220, "p90": 420}}
# Of web/: elements within each other take a line each.
PAGE_BUDGET = {"functions": {"most": 70, "median": 11, "p90": 36},
               "files": {"most": 700, "median": 250, "p90": 450}}
# Functions with more parameters, for a library fixes them.
CALLBACKS = {("server/transport.c", "handle"): "libmicrohttpd's MHD_AccessHandlerCallback",
             ("server/tls.c", "retrieve"): "GnuTLS's gnutls_certificate_retrieve_function3"}
FORMATTER = "14"  # Debian 12's
CPU_TEST_IN = "core/base/isa.c"
CPU_TEST = re.compile(r"__builtin_cpu_|\bcpuid\.h\b|\bgetauxval\b|\bsys/auxv\.h\b")
# These ask core/kernels/numeric_policy.h which type is computed in.
NUMERIC_POLICY = re.compile(r"core/passes/|core/ops/(pack|product|fused_\w+)\.c$")
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(work|root|farm)/")


def all_files():
    """What git would list; from a source archive, or without git, all but what builds and tools
    leave."""
    try:
        return subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True,
                              text=True, check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, names, files in os.walk(ROOT):
            names[:] = [name for name in names if name not in (".git", "__pycache__")
                        and not name.startswith((".venv", "build"))]
            paths += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files]
        return paths


def tracked(*endings):
    out = all_files()
    return sorted(path for path in out if path.endswith(endings) and os.path.isfile(os.path.join(ROOT, path)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def room_of(path):
    parts = path.split("/")
    if parts[0] in ("core", "api"):
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]
    return parts[0]


def arrows(sources):
    findings = []
    for path in sources:
        room = room_of(path)
        if room not in HEIGHT:
            continue
        for line in read(path).split("\n"):
            local = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            system = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
            places = SYSTEM_ONLY_IN.get(system.group(1), [room]) if system else [room]
            if not {room, path} & set(places):
                findings.append(f"{path}: <{system.group(1)}> belongs "
                                f"to {', '.join(places)}")
            if not local or "/" not in local.group(1):
                continue
            target = room_of(local.group(1))
            if target not in HEIGHT:
                findings.append(f"{path}: includes {local.group(1)}, which is in no room")
            elif target != room and HEIGHT[target] >= HEIGHT[room]:
                findings.append(f"{path}: {room} may not include {target} ({local.group(1)})")
    return findings


def insides(sources):
    """Programs are the engine's: no file of api sees how they are made, through whichever headers."""
    hidden = ("core/program", "core/passes", "core/interp", "core/compile")
    included = {path: [name for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(path), re.M)
                       if "/" in name] for path in sources}
    findings = []
    for path in (p for p in sources if p.startswith("api/")):
        seen, waiting = {path}, [path]
        while waiting:
            at = waiting.pop()
            for header in included.get(at, []):
                if room_of(header) in hidden:
                    findings.append(f"{path}: sees {header}, through {at}")
                elif header not in seen:
                    seen.add(header)
                    waiting.append(header)
    return findings


def facade(sources):
    """The server, its commands and libfxserve see core through its facade alone."""
    findings = []
    for path in (p for p in sources if p.startswith(("server/", "library/"))):
        for header in re.findall(r'^\s*#\s*include\s+"(core/[^"]+)"', read(path), re.M):
            if room_of(header) not in ("core/base", "core/engine"):
                findings.append(f"{path}: includes {header}; core/engine/engine.h lists what there is for it")
    return findings


def route_ids(sources):
    """A route is known by its row only: no code tests which route it has."""
    ids = set()
    rows = re.findall(r"^(?:VERSIONED_)?ROUTE\((\w+), (?:(\w+), )?", read("api/routes.def"), re.M)
    for name, of_version in rows:
        ids |= {name, of_version} - {""}
    findings = [] if ids else ["api/routes.def: no rows were found"]
    named = re.compile(rf"\bROUTE_({'|'.join(ids)})\b|route->(?:id|path), \"")
    for path in (p for p in sources if p.startswith(("api/", "core/", "server/"))):
        findings += [f"{path}: names the route {found.group()}; ask a property of its row (api/route.h)"
                     for found in named.finditer(read(path))]
    return findings


def operator_names():
    """Bare names of the operators of the table: "add", "batch_norm_eval". Rows are written with a whole
    schema ("aten::cat(...)") or, in tables of macros, with what stands behind "aten::"."""
    names = set()
    for path in (p for p in tracked(".c") if p.startswith("core/ops/")):
        for table in re.findall(r"^const OpDef .*?^};", read(path), re.M | re.S):
            names |= set(re.findall(r'"(?:\w+::)?(\w+)(?:\.\w+)?\(\w', table))
            names |= set(re.findall(r'^ +[A-Z_]+\((?:\w+, )?"(\w+)[".]', table, re.M))
    return names


def operators(sources):
    """An operator is known by its row only: code elsewhere neither spells a qualified name nor compares
    names."""
    names = operator_names()
    findings = [] if len(names) > 200 else ["core/ops: the rows of the table were not found"]
    qualified = re.compile(r'"(?:aten|fxserve|py|prims)::[^"(]*')
    compared = re.compile(r'\bstrn?(?:cmp|casecmp|str)\([^;]*?"(?:\w+::)?(\w+)[.("]')
    for path in (p for p in sources if p.startswith("core/")):
        if room_of(path) in ("core/ops", "core/targets"):
            continue
        text = read(path)
        findings += [f"{path}: spells the operator {found.group()}; ask for a role (op_for)"
                     for found in qualified.finditer(text)]
        if room_of(path) in ABOVE_OPERATORS:
            findings += [f"{path}: compares a name with {found.group(1)}; ask for a trait or role of its row"
                         for found in compared.finditer(text) if found.group(1) in names]
    return findings


# Rooms whose code reads bound arguments.
ARGUMENT_ROOMS = ("core/ops", "core/targets", "core/passes", "core/compile", "core/program", "core/interp",
                  "core/eval")
CALL_TYPE = r"(?:OpCall|ModuleCall|RecordedCall)"


def positions(sources):
    """Arguments are read by the names of arguments.def, which are checked against the schemas when the
    program starts: a position is no number, neither where a call's arrays are indexed, nor where a
    function takes a position behind the call, nor in a member of a row called *_arg."""
    texts = {p: re.sub(r"//[^\n]*", "", read(p)) for p in sources if room_of(p) in ARGUMENT_ROOMS}
    takers, rows = set(), set()
    for text in texts.values():
        takers |= set(re.findall(rf"\b(\w+)\([^()]*\b{CALL_TYPE} \*call,\s+int "
                                 r"(?:index|arg|position|\w+_arg)\b", text))
        rows |= {name for name, members in re.findall(r"^typedef struct (\w+) \{([^}]*)\} \1;", text, re.M)
                 if re.search(r"\b\w+_arg\b", members)}
    number = r"(?:[^,();]*\? )?-?\d"
    patterns = [re.compile(rf"\b(?:{'|'.join(takers)})\((?:[^(),]+,\s+)*?"
                           rf"&?[\w>.-]*call(?:->call)?,\s+{number}"),
                re.compile(rf"\bout_(?:view|same)\(&?call, [^,]+, {number}"),
                re.compile(r"(?<!Value )\b(?:args|config|state)\[\d"),
                re.compile(rf"\b\w+_arg = {number}")]
    tables = re.compile(rf"^(?:static )?const (?:{'|'.join(rows)}) [^;]*;", re.M)
    findings = [] if takers and rows else ["core/ops: nothing that takes a position was found"]
    for path, text in texts.items():
        findings += [f"{path}: {found.group()}: name the argument (arguments.def)"
                     for pattern in patterns for found in pattern.finditer(text)]
        findings += [f"{path}: {found}: name the positions or their members (arguments.def)"
                     for table in tables.findall(text)
                     for found in re.findall(r"\w+ = \{(?:[^{}]*,)?\s*-?\d+\s*[,}]", table)]
    return findings


FUNCTION = re.compile(r"^[A-Za-z_][\w *]*\b(\w+)\(([^;{}]*?)\)\n\{\n(.*?)^\}", re.M | re.S)


def that_call(names, functions):
    """The pattern of a call of one of these functions, or of one that takes a Compose and calls them."""
    names = set(names)
    while True:
        pattern = re.compile(rf"\b(?:{'|'.join(sorted(names))})\(")
        more = {name for name, takes, body in functions if "Compose *" in takes and pattern.search(body)}
        if more <= names:
            return pattern
        names |= more


def expands(sources):
    """In the order of the text: a value that one branch makes counts for the branches behind it, too. What
    a `return` ends by compose_end counts for nothing."""
    texts = {p: re.sub(r"//[^\n]*", "", read(p)) for p in sources if p.startswith("core/")}
    functions = [(path, text[:found.start(3)].count("\n") + 1, *found.groups())
                 for path, text in texts.items() for found in FUNCTION.finditer(text)]
    known = [function[2:] for function in functions]
    makes = that_call({"OP", "INTS", "compose_emit", "compose_keep"}, known)
    ended = re.compile(r"\breturn\b[^;]*" + that_call({"compose_end"}, known).pattern + "[^;]*;")
    begins, leaves = re.compile(r"\b\w+_begin\w*\(&"), re.compile(r"\breturn\b[^;]*;|\bTRY\([^;]*;")
    findings, n_seen = [], 0
    for path, line, name, _, body in functions:
        begun = begins.search(body)
        n_seen += bool(begun and ended.search(body))
        body = ended.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), body)
        made = makes.search(body, begun.end()) if begun else None
        findings += [f"{path}:{line + body[:found.start()].count(chr(10))}: {name} returns after it made "
                     "values; check before the first, or by compose_check"
                     for found in leaves.finditer(body) if made and found.end() > made.start()]
    return findings + ([] if n_seen > 200 else ["core/ops: the bodies of expressions were not found"])


def headers(sources):
    findings = []
    for path in (p for p in sources if p.endswith(".h") and room_of(p) in HEIGHT):
        command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-I", ROOT, "-Wall", "-Wextra", "-Werror",
                   "-fsyntax-only", "-x", "c", "-"]
        done = subprocess.run(command, input=f'#include "{path}"\n', capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            findings.append(f"{path}: does not compile alone: {done.stderr.strip().splitlines()[0]}")
    return findings


def function_lengths(text):
    """Lengths of functions: from a line that starts in column 0 and opens a body with a lone '{' to
    the lone '}' in column 0."""
    lengths, start, name = [], None, ""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line == "{":
            start = number
            back = number - 1
            while back > 0 and not re.match(r"[A-Za-z_].*\(", lines[back]):
                back -= 1
            start, name = (back,
                           lines[back].split("(")[0].split()[-1].lstrip("*") if "(" in lines[back] else "")
        elif line == "}" and start is not None:
            lengths.append((number - start + 1, name))
            start = None
    return lengths


def percentile(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * percent // 100)] if values else 0


def parameter_counts(text):
    """(name, parameters) of each function that is declared or defined in column 0."""
    text = re.sub(r"//[^\n]*", "", re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text))
    head = re.compile(r"^(?!#)(?:[A-Za-z_][\w *]*[ *])?([A-Za-z_]\w*)\(((?:[^()]|\([^()]*\))*)\)"
                      r"\s*(?:\{|;|__attribute__)", re.M)
    for found in head.finditer(text):
        parameters = re.sub(r"\([^()]*\)", "", found[2]).strip()
        yield found[1], 0 if parameters in ("", "void") else parameters.count(",") + 1


def parameters(sources):
    findings, most, seen = set(), BUDGET["functions"]["parameters"], set()
    for path in sources:
        for name, n in parameter_counts(read(path)):
            if n > most and not name.isupper():
                seen.add((path, name))
                if (path, name) not in CALLBACKS:
                    findings.add(f"{path}: {name} has {n} parameters, at most {most}")
    return sorted(findings) + [f"{path}: {name} needs no exception" for path, name in set(CALLBACKS) - seen]


def told_budget():
    """CONTRIBUTING.md has these rows."""
    functions, files = BUDGET["functions"], BUDGET["files"]
    rows = [f"| functions | ≤ {functions['most']} lines, median ≤ {functions['median']}, "
            f"p90 ≤ {functions['p90']}, ≤ {functions['parameters']} parameters |",
            f"| files | ≤ {files['most']} lines, median ≤ {files['median']}, p90 ≤ {files['p90']} |",
            f"| functions of `web/` | ≤ {PAGE_BUDGET['functions']['most']} lines, median ≤ "
            f"{PAGE_BUDGET['functions']['median']}, p90 ≤ {PAGE_BUDGET['functions']['p90']} |",
            f"| files of `web/` | ≤ {PAGE_BUDGET['files']['most']} lines, median ≤ "
            f"{PAGE_BUDGET['files']['median']}, p90 ≤ {PAGE_BUDGET['files']['p90']} |"]
    return [f"CONTRIBUTING.md lacks: {row}" for row in rows if row not in read("CONTRIBUTING.md")]


def lengths(functions, files, limits):
    """Findings of (lines, name) against a budget."""
    findings = []
    for what, rows in (("functions", functions), ("files", files)):
        most = limits[what]
        findings += [f"{name} has {n} lines, at most {most['most']}" for n, name in rows if n > most["most"]]
        for percent, limit in ((50, most["median"]), (90, most["p90"])):
            length = percentile([n for n, _ in rows], percent)
            if length > limit:
                findings.append(f"{what}: {percent} % have at most {length} lines, wanted {limit}")
    return findings


def budget(sources):
    findings, functions, files = told_budget() + parameters(sources), [], []
    for path in (p for p in sources if room_of(p) in HEIGHT and p.endswith((".c", ".h"))):
        text = read(path)
        files.append((text.count("\n"), path))
        functions += [(length, f"{path}: {name}") for length, name in function_lengths(text)]
    return findings + lengths(functions, files, BUDGET)


# What would turn a text into markup or code; the page's policy forbids most of it, too.
MARKUP = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|"
                    r"new Function|createContextualFragment|setHTMLUnsafe|javascript:)|"
                    r"https?://(?!www\.w3\.org/2000/svg)")


def script_functions(text):
    """(lines, first line) of the functions of a script: what opens with `{` behind a parameter list or an
    arrow and ends at the same indent."""
    lines, found = text.split("\n"), []
    head = re.compile(r"^( *)(?!(?:if|for|while|switch|\} )\b)\S.*(?:\)|=>) \{$")
    for number, line in enumerate(lines):
        opened = head.match(line)
        if not opened or re.match(r" *(if|for|while|switch|else|\})", line):
            continue
        end = next((k for k in range(number + 1, len(lines)) if lines[k].startswith(opened[1] + "}")), number)
        found.append((end - number + 1, line.strip()[:60]))
    return found


def page(_):
    findings, functions, files = [], [], []
    for path in (p for p in tracked(".js") if p.startswith("web/")):
        text = read(path)
        if not text.startswith("// SPDX-License-Identifier: Apache-2.0"):
            findings.append(f"{path}: the first line is not the SPDX line")
        findings += [f"{path}: {found.group()}" for found in MARKUP.finditer(text)]
        findings += [f"{path}: holds {what}" for pattern, what in FORBIDDEN if pattern.search(text)]
        findings += [f"{path}:{number}: {len(line)} columns, at most 110"
                     for number, line in enumerate(text.split("\n"), 1) if len(line) > 110]
        files.append((text.count("\n"), path))
        functions += [(length, f"{path}: {name}") for length, name in script_functions(text)]
    built = set(re.findall(r"'\.\./(web/[^']+)'", read("api/meson.build")))
    findings += [f"api/meson.build lacks {path}" for path in tracked(".js", ".css", ".html")
                 if path.startswith("web/") and path not in built]
    # The page asks for all of its modules at once; the report, the worker and what it reads come later.
    preloaded = set(re.findall(r'modulepreload" href="([^"]+)"', read("web/index.html")))
    later = {"web/early.js", "web/main.js", "web/report.js", "web/layout.js", "web/layout_worker.js"}
    findings += [f"web/index.html does not preload {path}" for _, path in files
                 if path not in preloaded | later]
    if len(files) < 5 or len(functions) < 50:
        findings.append("web/: its files or functions were not found")
    return findings + lengths(functions, files, PAGE_BUDGET)


def words(sources):
    findings = []
    for path in sources:
        text = read(path)
        if (path.endswith((".c", ".h", ".def"))
            and not text.startswith("// SPDX-License-Identifier: Apache-2.0")):
            findings.append(f"{path}: the first line is not the SPDX line")
        if path.endswith((".c", ".h", ".def")) and room_of(path) in HEIGHT:
            findings += [f"{path}: holds {what}" for pattern, what in FORBIDDEN if pattern.search(text)]
            if NUMERIC_POLICY.match(path) and "DTYPE_F32" in text:
                findings.append(f"{path}: names DTYPE_F32; core/kernels/numeric_policy.h says what is packed")
            if path != CPU_TEST_IN and CPU_TEST.search(text):
                findings.append(f"{path}: asks the CPU what it has; {CPU_TEST_IN} is the one place for that")
    for path in tracked(".c", ".h", ".def", ".py", ".sh", ".md", ".build", ".txt", ".inc", "quickstart",
                        "check", "run"):
        if path != "tests/layering/house.py" and MACHINE_PATH.search(read(path)):
            findings.append(f"{path}: names a path of one machine")
    return findings


def long_lines(path, text):
    """Line numbers of C lines that are too long; between `clang-format off` and `on` any length goes."""
    off = False
    for number, line in enumerate(text.split("\n"), 1):
        off = "clang-format off" in line or (off and "clang-format on" not in line)
        most = 100 if line.lstrip().startswith("//") else 110
        if not off and len(line) > most:
            yield f"{path}:{number}: {len(line)} columns, at most {most}"


def long_prose(path, text):
    """The same for Markdown: tables, code, and lines of one long word (a link) are left out."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        code = fenced or line.startswith("    ")
        if len(line) >= 100 and not code and not line.lstrip().startswith("|") and " " in line.strip("*- "):
            yield f"{path}:{number}: {len(line)} columns of prose, less than 100 are allowed"


def width(sources):
    findings = [found for p in sources if p.endswith((".c", ".h")) for found in long_lines(p, read(p))]
    prose = [p for p in tracked(".md") if p != "tests/REPORT.md"]  # which tests/report.py writes
    return findings + [found for p in prose for found in long_prose(p, read(p))]


def formatter():
    """clang-format's major version; "" when it is not here."""
    try:
        out = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return re.search(r"version (\d+)", out).group(1)


def formatting(sources):
    files = [p for p in sources if p.endswith((".c", ".h"))]
    done = subprocess.run(["clang-format", "--dry-run", "-Werror"] + files, cwd=ROOT, capture_output=True,
                          text=True, check=False)
    return sorted({line.split(":")[0] + ": clang-format would change it" for line in done.stderr.split("\n")
                   if "error:" in line})


def main():
    sources = tracked(".c", ".h", ".def", ".inc")
    checks = [("arrows", arrows), ("insides", insides), ("facade", facade), ("routes", route_ids),
              ("operators", operators), ("positions", positions), ("expands", expands),
              ("headers", headers), ("budget", budget),
              ("page", page), ("words", words), ("width", width), ("format", formatting)]
    failed = left_out = 0
    for name, check in checks:
        if check == formatting and formatter() != FORMATTER:
            print(f"left out: format, for it wants clang-format {FORMATTER}, and here "
                  f"is {formatter() or 'none'}")
            left_out += 1
            continue
        findings = check(sources)
        failed += bool(findings)
        print(f"{'FAILED' if findings else 'ok    '} {name}")
        for finding in findings:
            print("  " + finding)
    print(f"{len(checks) - failed - left_out} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
