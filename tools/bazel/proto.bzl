"""C++ libraries from .proto files, by the system's protoc."""

load("//tools/bazel:library.bzl", "COLD", "JOIN")

_ROOT = "proto"

def _outputs(srcs, suffix):
    stems = [src[:-len(".proto")] + suffix for src in srcs]
    return struct(hdrs = [stem + ".h" for stem in stems], srcs = [stem + ".cc" for stem in stems])

def proto_cc_library(name, srcs, deps = [], grpc = False, visibility = None):
    """Generates and compiles C++ for srcs, whose imports are relative to //proto.

    Args:
      name: the cc_library. Its sources are visible to dependents as name + "_protos".
      srcs: .proto files of this package.
      deps: proto_cc_library targets that srcs import from.
      grpc: whether srcs define services.
      visibility: of the library.
    """
    generated = _outputs(srcs, ".pb")
    services = _outputs(srcs, ".grpc.pb") if grpc else struct(hdrs = [], srcs = [])
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [dep + "_protos" for dep in deps],
        visibility = visibility,
    )
    plugin = "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) --grpc_out=$(GENDIR)/" + _ROOT
    native.genrule(
        name = name + "_generated",
        srcs = [name + "_protos"],
        outs = generated.hdrs + generated.srcs + services.hdrs + services.srcs,
        cmd = " ".join([
            "protoc -I" + _ROOT,
            "--cpp_out=$(GENDIR)/" + _ROOT,
            plugin if grpc else "",
            " ".join(["%s/%s" % (_ROOT, src) for src in srcs]),
        ]),
        message = "Generating C++ for " + name,
    )
    native.cc_library(
        name = name + "_messages" if grpc else name,
        srcs = generated.srcs,
        hdrs = generated.hdrs,
        includes = ["."],
        deps = deps + ["@system//:protobuf"],
        visibility = visibility,
    )
    if not grpc:
        return
    together = name + "_sources.cc"
    native.genrule(
        name = name + "_sources",
        srcs = services.srcs,
        outs = [together],
        cmd = JOIN,
    )
    native.cc_library(
        name = name,
        srcs = [together],
        hdrs = services.hdrs,
        copts = COLD,
        includes = ["."],
        deps = [name + "_messages", "@system//:grpc"],
        visibility = visibility,
    )
