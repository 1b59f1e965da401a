#!/usr/bin/env python3
"""Installs Debian packages in a clean Debian, and trains and compiles there.

Usage: package_test.py FOLDER [--suite=NAME] [TEST…]

FOLDER has the packages; `tools/package --test` makes them, and calls this. NAME is the Debian that they are for, such
as trixie; without it, that of this machine.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.append(os.path.join(HERE, "..", "testing"))
# pylint: disable=wrong-import-position
import broken_links  # noqa: E402

PACKAGES = SUITE = ""
MOST_SECONDS = 120  # from `apt-get install` to the end of five steps
LAUNCH = ("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1 "
          "mpirun --oversubscribe --bind-to none")


def missing():
    """Why the tests cannot run, or empty."""
    if os.geteuid():
        return "only root can make a Debian; run as root"
    if not shutil.which("debootstrap"):
        return "debootstrap is not installed; `tools/setup package` installs it"
    made = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces: {made.stderr.strip()}" if made.returncode else ""


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search("^VERSION_CODENAME=(.*)$", file.read(), re.MULTILINE).group(1)


def mirror(suite):
    """The mirror that apt of this machine uses."""
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                           f"Codename: {suite}"], check=False, capture_output=True, text=True)
    return (told.stdout.split() or ["http://deb.debian.org/debian"])[0]


class PackageTest(unittest.TestCase):
    """The tests have an order: the first has no compiler."""

    @classmethod
    def setUpClass(cls):
        why = missing()
        if why:
            raise unittest.SkipTest(why)
        folder = tempfile.TemporaryDirectory(prefix="sluice-debian.")
        cls.addClassCleanup(folder.cleanup)
        cls.root = os.path.join(folder.name, "root")
        suite = SUITE or release()
        subprocess.run(["debootstrap", "--variant=minbase", suite, cls.root, mirror(suite)], check=True,
                       stdout=subprocess.DEVNULL)
        for file in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(file, cls.root + file)
        for file in glob.glob("/etc/apt/apt.conf.d/*proxy*"):
            shutil.copy(file, cls.root + file)
        shutil.copytree(PACKAGES, cls.root + "/packages")
        shutil.copytree(os.path.join(HERE, "package"), cls.root + "/project")

    def run_inside(self, command):
        """Runs a command of the shell in the clean Debian. Returns what it printed."""
        mounts = 'mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" && exec chroot "$1" bash -ec "$2"'
        ended = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", mounts, "sh", self.root, command],
                               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                                    "DEBIAN_FRONTEND": "noninteractive"},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               check=False, timeout=1200)
        self.assertEqual(ended.returncode, 0, ended.stdout[-4000:])
        return ended.stdout

    def counted(self, printed, name):
        return [int(number) for number in re.findall(rf"^ *{name} +(\d+)$", printed, re.MULTILINE)]

    def test_1_trains_without_a_compiler_soon_after_the_installation(self):
        began = time.monotonic()
        self.run_inside("apt-get -q update && apt-get -q -y install ./packages/sluice_*.deb")
        installed = time.monotonic()
        printed = self.run_inside(f"cd /tmp && {LAUNCH} -n 3 sluice_train --max-steps=5")
        ended = time.monotonic()
        self.assertEqual(self.counted(printed, "steps"), [5], printed)
        self.assertEqual(self.counted(printed, "accepted"), [10], printed)
        self.assertEqual(self.run_inside("command -v gcc cc c++ bazel || true"), "")
        print(f"installed in {installed - began:.0f} s, trained in {ended - installed:.0f} s", file=sys.stderr)
        self.assertLess(ended - began, MOST_SECONDS)

    def test_2_all_programs_run_and_have_pages(self):
        for program in ("sluice", "sluice_doctor", "sluice_server", "sluice_train", "sluice_evaluate", "sluicectl"):
            self.assertRegex(self.run_inside(f"{program} --version"), rf"^{program} \(Sluice\) \d")
        self.assertIn("cannot read /none", self.run_inside("! sluicectl checkpoint export /none /tmp/out"))
        self.run_inside("apt-get -q -y install man-db bash-completion")
        # A minimal Debian leaves manual pages out.
        self.run_inside("rm -f /etc/dpkg/dpkg.cfg.d/docker; cd /tmp && dpkg-deb -x /packages/sluice_*.deb files")
        pages = self.run_inside("cd /tmp/files/usr/share/man/man1; for page in *; do man --warnings -l $page; done")
        for said in ("parameter server", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES"):
            self.assertIn(said, pages)
        self.assertNotIn("warning: ", pages)

    def test_2_alerts_and_the_dashboard_are_installed(self):
        files = self.run_inside("dpkg-deb -c /packages/sluice_*.deb | grep -o 'usr/share/sluice/.*[^/]$'").split()
        self.assertEqual(files, ["usr/share/sluice/metrics/alerts.yml", "usr/share/sluice/metrics/grafana.json"])

    def test_2_the_guides_lead_to_each_other_and_the_programs_suggest_them(self):
        self.run_inside("dpkg-deb -x /packages/sluice-doc_*.deb /doc && dpkg-deb -f /packages/sluice_*.deb Suggests | "
                        "grep -w sluice-doc")
        pages = self.root + "/doc/usr/share/doc/sluice"
        for name in ("README.md", "worker/guides/python.md", "worker/python/examples/ddp.py", "worker/examples/numpy/worker.py"):
            self.assertTrue(os.path.exists(f"{pages}/{name}"), name)
        self.assertEqual(broken_links.broken_links(pages), [])

    def test_2_the_maintainer_is_who_the_builder_names(self):
        maintainer = self.run_inside("dpkg-deb -f /packages/sluice_*.deb Maintainer").strip()
        name, address = os.environ.get("DEBFULLNAME"), os.environ.get("DEBEMAIL")
        if name and address:
            self.assertEqual(maintainer, f"{name} <{address}>")
        else:
            self.assertRegex(maintainer, "<.+@.+>$")

    def test_2_flags_come_from_the_environment(self):
        # Each Debian has another version of the library that reads flags.
        self.assertIn("found seven (set in the environment: SLUICE_WORKERS)",
                      self.run_inside("! SLUICE_WORKERS=seven sluice_server 2>&1"))

    def test_3_bash_completes_flags_and_values(self):
        self.assertEqual(self.completed("sluice_train", "--max-ste"), ["--max-steps=", "--max-step-wait="])
        self.assertEqual(self.completed("sluice_train", "--dataset=mn"), ["mnist"])
        self.assertEqual(self.completed("sluicectl", "checkpoint", "ex"), ["export"])
        self.assertEqual(self.completed("sluice", "do"), ["doctor"])

    def completed(self, *words):
        line = " ".join(words)
        split = " ".join(f"'{word}'" for word in re.findall(r"=|[^ =]+", line))
        return self.run_inside(f"""
            source /usr/share/bash-completion/bash_completion
            source /usr/share/bash-completion/completions/{words[0]}
            COMP_WORDS=({split}) COMP_LINE='{line}' COMP_POINT={len(line)} COMP_TYPE=9 COMP_KEY=9
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            compopt() {{ :; }}
            _{words[0]} {words[0]}
            printf '%s\\n' "${{COMPREPLY[@]}}" """).split()

    def test_4_a_project_in_c_builds_with_cmake_and_runs(self):
        self.run_inside("apt-get -q -y install cmake gcc make pkg-config ./packages/libsluice0_*.deb "
                        "./packages/libsluice-dev_*.deb")
        self.run_inside("cmake -S /project -B /tmp/build && cmake --build /tmp/build")
        self.assertIn("x = 3.000", self.run_inside(f"cd /tmp && {LAUNCH} -n 3 /tmp/build/least"))

    def test_5_a_project_in_c_builds_with_pkg_config_and_runs(self):
        self.run_inside("gcc -std=c99 -Wall -Wextra -Werror -pedantic -o /tmp/least /project/least.c "
                        "$(pkg-config --cflags --libs sluice)")
        self.assertIn("x = 3.000", self.run_inside(f"cd /tmp && {LAUNCH} -n 3 /tmp/least"))
        self.run_inside("test -e $(pkg-config --variable=protodir sluice)/sluice/v1/parameter_server.proto")

    def test_6_a_project_in_python_runs(self):
        self.run_inside("apt-get -q -y install --no-install-recommends ./packages/python3-sluice_*.deb")
        printed = self.run_inside("""cd /tmp && python3 -c 'import importlib.metadata as m; print(m.version("sluice"))'""")
        self.assertRegex(printed, r"^\d+\.\d+\.\d+$")
        self.run_inside("apt-get -q -y install --no-install-recommends python3-torch")
        # The library says this, outside of a launch.
        self.assertIn("no server: give --sluice-server", self.run_inside("cd /tmp && ! python3 -c 'import sluice; sluice.start()'"))
        self.assertIn("y = 2.000 x + 1.000", self.run_inside(f"cd /tmp && {LAUNCH} -n 3 python3 /project/python/line.py"))

    def test_7_a_project_with_libtorch_builds_with_cmake_and_runs(self):
        self.run_inside("apt-get -q -y install g++")
        missing = self.run_inside("! cmake -S /project/torch -B /tmp/torch")
        self.assertIn("not installed: apt install libsluice-torch-dev", missing)
        self.run_inside("apt-get -q -y install ./packages/libsluice-torch*.deb")
        self.run_inside("cmake -S /project/torch -B /tmp/torch && cmake --build /tmp/torch")
        self.assertIn("y = 2.000 x + 1.000", self.run_inside(f"cd /tmp && {LAUNCH} -n 3 /tmp/torch/line"))

    def test_8_a_project_with_libtorch_builds_with_pkg_config_and_runs(self):
        self.run_inside("g++ -std=c++17 -Wall -o /tmp/line /project/torch/line.cc "
                        "$(pkg-config --cflags --libs sluice-torch)")
        self.assertIn("y = 2.000 x + 1.000", self.run_inside(f"cd /tmp && {LAUNCH} -n 3 /tmp/line"))

    def test_9_nothing_is_left_after_a_purge(self):
        self.run_inside("apt-get -q -y purge sluice 'libsluice*'")
        self.assertEqual(self.run_inside("ls -d /etc/sluice /usr/libexec/sluice /usr/share/sluice 2>/dev/null || true"), "")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not glob.glob(sys.argv[1] + "/sluice_*.deb"):
        sys.exit(__doc__)
    PACKAGES = os.path.realpath(sys.argv.pop(1))
    if len(sys.argv) > 1 and sys.argv[1].startswith("--suite="):
        SUITE = sys.argv.pop(1).partition("=")[2]
    unittest.main(verbosity=2)
