#!/usr/bin/env python3
"""Makes a wheel of the Python package: make_wheel.py LIBRARY VERSION OUTPUT.

The wheel holds the package, LIBRARY (libsluice.so.0), and the libraries that it needs. Those of the C library and
of MPI are the machine's. It needs patchelf. SOURCE_DATE_EPOCH is the time of all files in it.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# The machine's own: glibc, the compiler's libraries, which PyTorch loads, too, and MPI, which belongs to mpirun.
OF_THE_MACHINE = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|libmpi)\.so.*")
GLIBC_BESIDE = {"30": (2, 35), "31": (2, 38), "32": (2, 38), "33": (2, 39), "34": (2, 42)}


def output_of(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def needed(path):
    """Returns the names of the libraries that the one at `path` names, without the machine's own."""
    return [name for name in output_of("patchelf", "--print-needed", path).split() if not OF_THE_MACHINE.fullmatch(name)]


def carried(library):
    """Returns the path of each library that must be carried, by its name."""
    paths = dict(re.findall(r"(\S+) => (/\S+)", output_of("ldd", library)))
    found, rest = {}, needed(library)
    while rest:
        name = rest.pop()
        if name not in found:
            found[name] = os.path.realpath(paths[name])
            rest += needed(found[name])
    return found


def collect(library, folder):
    """Copies the library and those that it needs to a folder, where they find each other."""
    for name, path in {**carried(library), "libsluice.so.0": library}.items():
        target = os.path.join(folder, name)
        shutil.copyfile(path, target)
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", target], check=True)


def glibc_of(folder):
    """Returns the oldest version of glibc on which the libraries in the folder run, such as (2, 36)."""
    wanted = "".join(output_of("objdump", "-T", os.path.join(folder, name)) for name in os.listdir(folder))
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", wanted)]
    # A tag names glibc alone. These are the versions that systems have beside a libstdc++.
    versions += [GLIBC_BESIDE[minor] for minor in re.findall(r"GLIBCXX_3\.4\.(\d+)", wanted) if minor in GLIBC_BESIDE]
    return max(versions)


def tag_of(folder):
    major, minor = glibc_of(folder)
    return f"py3-none-manylinux_{major}_{minor}_{os.uname().machine}"


def texts_of(version, tag):
    about = f"sluice-{version}.dist-info"
    return {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: sluice\nVersion: {version}\n"
                             "Summary: A parameter server for PyTorch\nLicense: Apache-2.0\nRequires-Python: >=3.9\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }


def write(path, files):
    """Writes a wheel of files, which are bytes by their names. The same files give the same bytes."""
    moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")))[:6]
    about = next(os.path.dirname(name) for name in files if name.endswith("/WHEEL"))
    record = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    record.append(f"{about}/RECORD,,\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in [*sorted(files.items()), (f"{about}/RECORD", "".join(record).encode())]:
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


def main():
    library, version, output = sys.argv[1:]
    package = os.path.join(TREE, "worker", "python", "sluice")
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        collect(library, folder)
        tag = tag_of(folder)
        for source in (package, folder):
            for name in os.listdir(source):
                if source == folder or name.endswith((".py", ".typed")):
                    with open(os.path.join(source, name), "rb") as file:
                        files[f"sluice/{name}"] = file.read()
    files.update({name: text.encode() for name, text in texts_of(version, tag).items()})
    os.makedirs(output, exist_ok=True)
    path = os.path.join(output, f"sluice-{version}-{tag}.whl")
    write(path, files)
    print(path)


if __name__ == "__main__":
    main()
