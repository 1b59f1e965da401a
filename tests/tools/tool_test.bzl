"""The tests of tools, which are programs in Python."""

def tool_test(name, data = [], size = "small", reads_tree = False, exclusive = False):
    """Runs NAME.py.

    Args:
      name: also of the file
      data: what it reads or starts
      size: as of any test
      reads_tree: whether it also reads files out of the source tree, which it finds through the link to WORKSPACE.
        Bazel does not see these files, so such a test always runs.
      exclusive: whether no other test may run beside it
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = [name + ".py"],
        data = data + ["//tests/testing:recorded_tests.py"] + (["//:WORKSPACE"] if reads_tree else []),
        env = {"PYTHONDONTWRITEBYTECODE": "1"},  # beside the sources, which it finds through links
        tags = ["local"] + (["external"] if reads_tree else []) + (["exclusive"] if exclusive else []),
    )
