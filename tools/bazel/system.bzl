"""The distribution's libraries as cc_library targets in the repository @system.

Two environment variables choose another copy of a library:
  SLUICE_LIBTORCH  an unpacked LibTorch (the folder that holds include/ and lib/), for CUDA users
  SLUICE_MPI       an MPI's prefix (the folder that holds include/ and lib/)
"""

# Target name -> the pkg-config modules behind it.
_PKG_CONFIG = {
    "absl": [
        "absl_base",
        "absl_flat_hash_map",
        "absl_hash",
        "absl_inlined_vector",
        "absl_span",
        "absl_status",
        "absl_statusor",
        "absl_str_format",
        "absl_strings",
        "absl_synchronization",
        "absl_time",
    ],
    "glog": ["libglog"],
    "gnutls": ["gnutls"],
    "grpc": ["grpc++"],
    "json": ["nlohmann_json"],
    "microhttpd": ["libmicrohttpd"],
    "ncurses": ["ncursesw"],
    "openssl": ["openssl"],
    "prometheus": ["prometheus-cpp-core"],
    "protobuf": ["protobuf"],
    "xxhash": ["libxxhash"],
    "zlib": ["zlib"],
    "zstd": ["libzstd"],
}

# Target name -> link flags, for what comes without a pkg-config file.
_PLAIN = {
    "cli11": [],
    "gtest": ["-lgmock", "-lgtest"],
    "gtest_main": ["-lgmock", "-lgtest_main", "-lgtest"],
}

_LIBRARY = """
cc_library(
    name = "{name}",
    copts = [],
    defines = {defines},
    hdrs = {hdrs},
    includes = {includes},
    linkopts = {linkopts},
)
"""

def _run(ctx, command):
    result = ctx.execute(command)
    if result.return_code != 0:
        fail("%s failed: %s\nRun tools/setup, which installs what is missing." %
             (" ".join(command), result.stderr.strip()))
    return [flag for flag in result.stdout.strip().split(" ") if flag]

def _unique(flags):
    return {flag: None for flag in flags}.keys()

def _library(name, linkopts = [], hdrs = "[]", includes = [], defines = []):
    return _LIBRARY.format(
        name = name,
        defines = defines,
        hdrs = hdrs,
        includes = includes,
        linkopts = _unique(linkopts),
    )

def _prefix_library(ctx, name, prefix, include_dirs, libraries):
    """A library under a user's own prefix: its headers linked in as <name>_prefix/."""
    ctx.symlink(prefix, name + "_prefix")
    return _library(
        name,
        hdrs = "glob([\"%s_prefix/include/**\"])" % name,
        includes = [name + "_prefix/" + path for path in include_dirs],
        linkopts = ["-L%s/lib" % prefix, "-Wl,-rpath,%s/lib" % prefix] + ["-l" + lib for lib in libraries],
    )

def _torch(ctx):
    prefix = ctx.os.environ.get("SLUICE_LIBTORCH", "")
    if not prefix:
        ctx.symlink("/usr/include/torch/csrc/api/include", "torch_api")
        return _library(
            "torch",
            hdrs = "glob([\"torch_api/**\"])",
            includes = ["torch_api"],
            linkopts = ["-ltorch_cpu", "-ltorch", "-lc10"],
        )
    libraries = ["torch_cpu", "torch", "c10"]
    if ctx.path(prefix + "/lib/libtorch_cuda.so").exists:
        # Nothing names a CUDA symbol: the backend registers itself when it is loaded.
        libraries = libraries + ["c10_cuda", "-no-as-needed", "torch_cuda"]
    library = _prefix_library(ctx, "torch", prefix, ["include", "include/torch/csrc/api/include"], libraries)
    return library.replace("-l-no-as-needed", "-Wl,--no-as-needed")

def _mpi(ctx):
    prefix = ctx.os.environ.get("SLUICE_MPI", "")
    if prefix:
        return _prefix_library(ctx, "mpi", prefix, ["include"], ["mpi"])
    flags = _run(ctx, ["pkg-config", "--cflags", "--libs", "ompi-c"])
    include = [flag[2:] for flag in flags if flag.startswith("-I")]
    ctx.symlink(include[0], "mpi_include")
    return _library(
        "mpi",
        hdrs = "glob([\"mpi_include/**\"])",
        includes = ["mpi_include"],
        linkopts = [flag for flag in flags if not flag.startswith("-I")],
    )

# The charts of the server's page, which a genrule puts into the binary: file -> where the package has it.
_DYGRAPHS = {
    "dygraphs/LICENSE": "/usr/share/doc/libjs-dygraphs/copyright",
    "dygraphs/dygraph.min.js": "/usr/share/javascript/dygraphs/dygraph.min.js",
}

def _dygraphs(ctx):
    for file, installed in _DYGRAPHS.items():
        if not ctx.path(installed).exists:
            fail("%s is missing. Run tools/setup, which installs libjs-dygraphs." % installed)
        ctx.symlink(installed, file)
    return "exports_files(%s)" % _DYGRAPHS.keys()

def _system_libraries(ctx):
    build = ["package(default_visibility = [\"//visibility:public\"])"]
    for name, modules in _PKG_CONFIG.items():
        flags = _run(ctx, ["pkg-config", "--libs"] + modules)
        build.append(_library(name, [f for f in flags if f.startswith("-l")]))
    for name, flags in _PLAIN.items():
        build.append(_library(name, flags))
    build.append(_torch(ctx))
    build.append(_mpi(ctx))
    build.append(_dygraphs(ctx))
    ctx.file("BUILD.bazel", "\n".join(build))

system_libraries = repository_rule(
    implementation = _system_libraries,
    environ = ["SLUICE_LIBTORCH", "SLUICE_MPI"],
    local = True,
)
