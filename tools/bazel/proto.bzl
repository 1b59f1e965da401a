"""C++ libraries from .proto files, by the system's protoc."""

_ROOT = "proto"

def _outputs(src, suffixes):
    return [src[:-len(".proto")] + suffix for suffix in suffixes]

def proto_cc_library(name, srcs, deps = [], grpc = False, visibility = None):
    """Generates and compiles C++ for srcs, whose imports are relative to //proto.

    Args:
      name: the cc_library. Its sources are visible to dependents as name + "_protos".
      srcs: .proto files of this package.
      deps: proto_cc_library targets that srcs import from.
      grpc: whether srcs define services.
      visibility: of the library.
    """
    suffixes = [".pb.h", ".pb.cc"] + ([".grpc.pb.h", ".grpc.pb.cc"] if grpc else [])
    generated = []
    for src in srcs:
        generated += _outputs(src, suffixes)
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [dep + "_protos" for dep in deps],
        visibility = visibility,
    )
    plugin = "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) --grpc_out=$(GENDIR)/" + _ROOT
    native.genrule(
        name = name + "_generated",
        srcs = [name + "_protos"],
        outs = generated,
        cmd = " ".join([
            "protoc -I" + _ROOT,
            "--cpp_out=$(GENDIR)/" + _ROOT,
            plugin if grpc else "",
            " ".join(["%s/%s" % (_ROOT, src) for src in srcs]),
        ]),
        message = "Generating C++ for " + name,
    )
    native.cc_library(
        name = name,
        srcs = [out for out in generated if out.endswith(".cc")],
        hdrs = [out for out in generated if out.endswith(".h")],
        includes = ["."],
        deps = deps + ["@system//:protobuf"] + (["@system//:grpc"] if grpc else []),
        visibility = visibility,
    )
