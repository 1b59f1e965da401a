"""Fuzz targets: tests of their kept inputs, or with --config=fuzz programs of libFuzzer."""

load("//tests:sluice_test.bzl", "UNOPTIMIZED")

def fuzz_target(name, deps, size = "small"):
    """Makes a test, or a fuzzer, of <name>.cc.

    Args:
      name: of the target, of its source, of the folder of its findings in corpus/, and of the file of the inputs that
        libFuzzer has chosen.
      deps: of the source.
      size: of the test.
    """
    corpus = native.glob([
        "corpus/%s/*" % name,
        "corpus/%s.base64" % name,
    ])
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"],
        copts = select({
            ":fuzzing": [],
            "//conditions:default": UNOPTIMIZED,
        }),
        args = ["%s/%s" % (native.package_name(), file) for file in corpus],
        data = corpus,
        linkstatic = True,  # one file, which can be run anywhere
        deps = deps + [
            ":input",
            ":refusal",
            ":target",
            "@system//:absl",
            "@system//:glog",
        ] + select({
            ":fuzzing": [":libfuzzer"],
            "//conditions:default": [":replay"],
        }),
    )
