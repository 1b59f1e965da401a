"""Sluice's tests in C++."""

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

def _joined(name, srcs):
    joined = name + "_sources.cc"
    native.genrule(
        name = name + "_sources",
        testonly = True,
        srcs = srcs,
        outs = [joined],
        cmd = _JOIN,
    )
    return [joined]

def sluice_test(name, deps, srcs = None, size = "small", tags = [], optimized = False, **kwargs):
    """Makes a GoogleTest program.

    Args:
      name: of the test; that of its folder, where it has several sources.
      deps: what it tests and uses, beside Abseil and GoogleTest, which all tests have.
      srcs: its sources; if none are named, <name>.cc.
      size: how long it may take: "small" is a minute.
      tags: "core" says that it links neither gRPC nor LibTorch, so that ThreadSanitizer can run it.
      optimized: for a test whose own source takes much of its time.
      **kwargs: as for cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = _joined(name, srcs) if srcs and len(srcs) > 1 else srcs or [name + ".cc"],
        copts = [] if optimized else PRECOMPILED,
        tags = tags,
        deps = deps + [
                   "@system//:absl",
                   "@system//:gtest_main",
               ] + (["//tests/testing:tsan_absl"] if "core" in tags else []) +
               ([] if optimized else ["//tests:precompiled"]),
        **kwargs
    )

def sluice_test_library(name, deps = [], **kwargs):
    """Makes a library of what tests share, compiled as tests are.

    Args:
      name: as for cc_library.
      deps: what it uses.
      **kwargs: as for cc_library.
    """
    native.cc_library(
        name = name,
        testonly = True,
        copts = PRECOMPILED,
        deps = deps + ["//tests:precompiled"],
        **kwargs
    )
