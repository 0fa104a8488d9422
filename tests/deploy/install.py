# SPDX-License-Identifier: Apache-2.0
"""What `meson install` brings, put into a folder: install.py BUILD. The program runs from there; the
unit starts it; the manual page names every command, flag and variable and is well formed (mandoc,
if it is here); bash completes every command, every flag and the values of those that take one of a
few words; links between the documents hold; the files that .dockerignore lets through are enough for
meson, and for what ninja makes of them; too little disk is told before a build; without a terminal
./quickstart says how to start its server again. The last line is `N passed, N failed`."""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from service import ROOT, Failed, Tally, tracked_files

FILES = ["bin/fxserve", "lib/systemd/system/fxserve.service", "share/bash-completion/completions/fxserve",
         "share/man/man1/fxserve.1", "share/doc/fxserve/README.md", "share/doc/fxserve/CHANGELOG.md",
         "share/doc/fxserve/LICENSE", "share/doc/fxserve/SECURITY.md"]


def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


class Installed:
    """The folder, and what the program in it says of itself."""

    def __init__(self, build, folder):
        output("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder)
        binaries = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
                    if os.path.join(place, name).endswith("/bin/fxserve")]
        if len(binaries) != 1:
            raise Failed(f"bin/fxserve was installed {len(binaries)} times")
        self.folder, self.binary = folder, binaries[0]
        self.prefix = os.path.dirname(os.path.dirname(self.binary))
        self.help = output(self.binary, "--help")
        self.commands = re.findall(r"^  fxserve ([a-z]+)\b", self.help, re.M)
        rows = re.findall(r"^\| `--([a-z0-9-]+)([^`]*)` \| `(FXSERVE_\w+)`",
                          output(self.binary, "--help=markdown").replace("\\|", "|"), re.M)
        self.flags = {f"--{flag}": value.strip() for flag, value, _ in rows}
        self.variables = [variable for _, _, variable in rows]
        if len(self.commands) < 5 or len(self.flags) < 20:
            raise Failed(f"--help lists {len(self.commands)} commands and {len(self.flags)} flags")

    def path(self, place):
        return os.path.join(self.prefix, place)

    def read(self, place):
        with open(self.path(place), encoding="utf-8") as file:
            return file.read()

    def flags_of(self, command):
        if command in ("serve", "help"):
            return set(self.flags) if command == "serve" else set()
        return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", output(self.binary, "help", command)))

    def complete(self, *words):
        """What bash offers for the last word."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fxserve; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        environment = dict(os.environ, PATH=os.path.dirname(self.binary) + ":" + os.environ["PATH"])
        file = self.path("share/bash-completion/completions/fxserve")
        return set(output("bash", "-c", script, "bash", file, "fxserve", *words, env=environment,
                          cwd=self.path("share/doc/fxserve")).split())


def check_files(installed):
    lacking = [path for path in FILES if not os.path.isfile(installed.path(path))]
    documents = [os.path.join("share/doc/fxserve/docs", name)
                 for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]
    lacking += [path for path in documents if not os.path.isfile(installed.path(path))]
    if lacking or not documents:
        raise Failed(f"not installed: {', '.join(lacking) or 'any document'}")
    if not os.access(installed.binary, os.X_OK) or "fxserve" not in output(installed.binary, "--version"):
        raise Failed("the program does not run from there")


def check_unit(installed):
    starts = re.findall(r"^ExecStart=(\S+)", installed.read("lib/systemd/system/fxserve.service"), re.M)
    if [installed.folder + path for path in starts] != [installed.binary]:
        raise Failed(f"the unit starts {starts}, the program is {installed.binary}")


def check_page(installed):
    page = installed.read("share/man/man1/fxserve.1").replace("\\-", "-")
    lacking = [f"fxserve {name}" for name in installed.commands if f".B fxserve {name}" not in page]
    lacking += [flag for flag in installed.flags if not re.search(rf"^\.B {flag}( |$)", page, re.M)]
    lacking += [name for name in installed.variables if not re.search(rf"^{name}\b", page, re.M)]
    for command in installed.commands:
        lacking += [f"{command} {flag}" for flag in installed.flags_of(command) if flag not in page]
    if lacking or re.search(r"@[A-Z_]+@", page):
        raise Failed(f"the page does not name {', '.join(lacking)}" if lacking else "a mark is left")


def check_page_form(installed):
    if shutil.which("mandoc") is None:
        print("mandoc is not here: the form of the manual page is left out")
        return
    page = installed.path("share/man/man1/fxserve.1")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0 or done.stdout:
        raise Failed(done.stdout[-1000:])


def check_completion(installed):
    wrong = [] if installed.complete("") == set(installed.commands) else ["the commands"]
    for command in installed.commands:
        told = installed.complete(command, "-") if command != "help" else set()
        if told != installed.flags_of(command):
            wrong.append(f"{command}: {sorted(told ^ installed.flags_of(command))}")
    if installed.complete("--log-f") != {"--log-format", "--log-file"}:
        wrong.append("flags without a command")
    if installed.complete("help", "") != set(installed.commands):
        wrong.append("help")
    if wrong:
        raise Failed("; ".join(wrong))


def check_values(installed):
    chosen = {flag: value for flag, value in installed.flags.items()
              if re.fullmatch(r"[a-z]+(\|[a-z]+)+", value)}
    wrong = [flag for flag, value in chosen.items()
             if installed.complete("serve", flag, "") != set(value.split("|"))]
    for command, flag in (("print", "--form"), ("compare", "--form"), ("compare", "--mode")):
        values = set(re.search(rf"{flag} (\S+?)\]", output(installed.binary, "help", command))[1].split("|"))
        wrong += [] if installed.complete(command, "x.json", flag, "") == values else [f"{command} {flag}"]
    wrong += [words for words in ("push READ", "serve --token-file READ", "call x -o READ", "serve READ")
              if installed.complete(*words.split()) != {"README.md"}]
    wrong += [] if installed.complete("serve", "--workers", "") == set() else ["serve --workers"]
    if wrong or not chosen:
        raise Failed(f"values of {wrong}")


def check_links(installed):
    """Links from one document to another that is installed beside it."""
    folder, broken, seen = installed.path("share/doc/fxserve"), [], 0
    for place, _, names in os.walk(folder):
        for name in [name for name in names if name.endswith(".md")]:
            for link in re.findall(r"\]\(([\w./-]+\.md)[)#]", installed.read(os.path.join(place, name))):
                at = os.path.normpath(os.path.join(place, link))
                if os.path.dirname(at) in (folder, os.path.join(folder, "docs")):
                    seen += 1
                    # for those who change the code, and not installed
                    if not os.path.isfile(at) and os.path.basename(at) != "CONTRIBUTING.md":
                        broken.append(f"{name}: {link}")
    if broken or seen < 3:
        raise Failed(", ".join(broken) or "there are no links")


def sent_to_docker():
    """The tracked files that .dockerignore leaves, by its rules as far as they are used here: paths
    from the root, and `!` for what is let through all the same."""
    with open(os.path.join(ROOT, ".dockerignore"), encoding="utf-8") as file:
        rules = [line.strip() for line in file if line.strip()]
    for path in tracked_files(ROOT):
        parents = ["/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 2)]
        kept = True
        for rule in rules:
            if any(fnmatch.fnmatchcase(parent, rule.removeprefix("!")) for parent in parents):
                kept = rule.startswith("!")
        if kept and os.path.isfile(os.path.join(ROOT, path)):
            yield path


def check_context(_):
    """The image's build finds its inputs: `meson setup`, and ninja's plan."""
    with tempfile.TemporaryDirectory() as folder:
        for path in sent_to_docker():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, path), os.path.join(folder, path))
        build = os.path.join(folder, "build")
        for command in (["meson", "setup", build, "-Dtests=disabled", "--prefix=/usr"],
                        ["ninja", "-C", build, "-n", "fxserve"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failed(f"{command[0]}: {done.stdout[-600:]}{done.stderr[-300:]}")


def check_disk(_):
    """Too little of it is told in one line, before anything is built."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "df"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho Filesystem\necho /dev/vda 9 6 3 66% /\n")
        os.chmod(file.name, 0o755)
        quick = subprocess.run(["./quickstart"], cwd=ROOT, capture_output=True, text=True, check=False,
                               env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
    program = ("import sys; sys.path.insert(0, 'tools/dev'); sys.argv[1:] = ['build']; import check; "
               "check.BUILD_MB['build'] = 10 ** 12; sys.exit(check.main())")
    whole = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True,
                           check=False)
    for ended, words in ((quick, r"^[a-z ]+ needs \d+ MB of disk in \S+, 3 MB are free$"),
                         (whole, r"^the builds need \d+ MB of disk in \S+, \d+ MB are free$")):
        said = ended.stdout + ended.stderr
        if ended.returncode != 1 or len(said.split("\n")) > 4 or not re.search(words, said, re.M):
            raise Failed(f"exit {ended.returncode}: {said[-1000:]}")


def check_quickstart(installed):
    """Without a terminal ./quickstart stops its server and says how to start it again, which works."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("quickstart", "tools/show_digits.py", "tools/dev/packages.sh", "tests/models/digits.pt2",
                     "tests/models/digits_images.json", "tests/models/digits_labels.json"):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
        os.mkdir(os.path.join(folder, "build"))
        os.symlink(installed.binary, os.path.join(folder, "build", "fxserve"))
        with open(os.path.join(folder, "build", "build.ninja"), "w", encoding="utf-8") as file:
            file.write("build fxserve: phony\n")
        done = subprocess.run(["./quickstart"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        found = re.search(r"^Without a terminal the server stops now\. This starts it again:\n  (\S.*)\n\n"
                          r"Try it:\n(?:  curl .*\n)*?  (curl .*images\.json)$", done.stdout, re.M)
        if done.returncode != 0 or "10 of 10 digits right" not in done.stdout or not found:
            raise Failed(f"exit {done.returncode}: {done.stdout[-1500:]}{done.stderr[-500:]}")
        server = subprocess.Popen(["bash", "-c", "exec " + found[1]], cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        try:
            server.stdout.readline()
            answer = subprocess.run(["bash", "-c", found[2]], cwd=folder, capture_output=True, text=True,
                                    check=False)
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()
        if '"outputs"' not in answer.stdout:
            raise Failed(f"{found[2]}: {answer.stdout}{answer.stderr}")


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        try:
            installed = Installed(os.path.abspath(sys.argv[1]), folder)
        except (Failed, subprocess.CalledProcessError) as problem:
            tally.check("installed", f"{problem} {getattr(problem, 'stderr', '')}")
            return tally.end()
        for name, check in (("files", check_files), ("systemd unit", check_unit), ("manual page", check_page),
                            ("form of the page", check_page_form), ("completion", check_completion),
                            ("values and files", check_values), ("links", check_links),
                            ("quickstart", check_quickstart),
                            ("files that the image is built from", check_context),
                            ("too little disk", check_disk)):
            problem = None
            try:
                check(installed)
            except Failed as failure:
                problem = str(failure)
            tally.check(name, problem)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
