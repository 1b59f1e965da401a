"""Sluice's tests in C++."""

load("//tools/bazel:library.bzl", "JOIN")

# Tests are compiled more often than they are run: the optimizer would cost as much time as all the rest.
UNOPTIMIZED = ["-O0", "-U_FORTIFY_SOURCE"]

# Of targets that depend on //tests:precompiled.
PRECOMPILED = UNOPTIMIZED + ["-include", "$(BINDIR)/tests/precompiled.h"]

# Several sources are compiled as one, because their headers take longer than they do. Each source has its own
# namespace in place of the anonymous one, so that names may recur. Messages and debuggers name the source.
_JOIN = """for source in $(SRCS); do
    echo "#line 1 \\"$$source\\""
    sed "s/^namespace {$$/namespace $$(basename $$source .cc) {/" $$source
  done > $@"""

def _joined(name, srcs, cmd):
    if len(srcs) == 1:
        return srcs
    joined = name + "_sources.cc"
    native.genrule(
        name = name + "_sources",
        testonly = True,
        srcs = srcs,
        outs = [joined],
        cmd = cmd,
    )
    return [joined]

# What tests/testing/seed.h reads. Only the tests that inherit it run again when it changes.
SEED = ["SLUICE_TEST_SEED"]

def sluice_test(name, deps, srcs = None, size = "small", tags = [], seeded = False, **kwargs):
    """Makes a GoogleTest program.

    Args:
      name: of the test; that of its folder, where it has several sources.
      deps: what it tests and uses, beside Abseil and GoogleTest, which all tests have.
      srcs: its sources; if none are named, <name>.cc.
      size: how long it may take: "small" is a minute.
      tags: "core" says that it links neither gRPC nor LibTorch, so that ThreadSanitizer can run it.
      seeded: for a test whose random cases follow from RunSeed().
      **kwargs: as for cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = _joined(name, srcs or [name + ".cc"], _JOIN),
        copts = PRECOMPILED,
        tags = tags,
        env_inherit = SEED if seeded else [],
        deps = deps + [
                   "//tests:precompiled",
                   "@system//:absl",
                   "@system//:gtest_main",
               ] + (["//tests/testing:tsan_absl"] if "core" in tags else []) +
               (["//tests/testing:seed"] if seeded else []),
        **kwargs
    )

def sluice_test_library(name, srcs, deps = [], **kwargs):
    """Makes a library of what tests share, compiled as tests are.

    Args:
      name: as for cc_library.
      srcs: its sources. Several are compiled as one, so that names in their anonymous namespaces must differ.
      deps: what it uses.
      **kwargs: as for cc_library.
    """
    native.cc_library(
        name = name,
        srcs = _joined(name, srcs, JOIN),
        testonly = True,
        copts = PRECOMPILED,
        deps = deps + ["//tests:precompiled"],
        **kwargs
    )

def sluice_test_program(name, deps, **kwargs):
    """Makes a program that tests start, compiled as tests are, of <name>.cc.

    Args:
      name: of the program.
      deps: what it uses.
      **kwargs: as for cc_binary.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        copts = PRECOMPILED,
        deps = deps + ["//tests:precompiled"],
        **kwargs
    )
