"""Sluice's tests in C++."""

def sluice_test(name, deps, srcs = None, size = "small", tags = [], **kwargs):
    """Makes a GoogleTest program of <name>.cc.

    Args:
      name: of the test, and of its source.
      deps: what it tests and uses, beside Abseil and GoogleTest, which all tests have.
      srcs: its sources, where they are not <name>.cc alone.
      size: how long it may take: "small" is a minute.
      tags: "core" says that it links neither gRPC nor LibTorch, so that ThreadSanitizer can run it.
      **kwargs: as for cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        tags = tags,
        deps = deps + [
            "@system//:absl",
            "@system//:gtest_main",
        ] + (["//tests/testing:tsan_absl"] if "core" in tags else []),
        **kwargs
    )
