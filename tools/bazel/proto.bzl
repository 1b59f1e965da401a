"""C++ libraries from .proto files, by the system's protoc."""

load("//tools/bazel:library.bzl", "COLD", "JOIN")

_ROOT = "proto"

# Where own copies lie, and what is before their packages.
_OWN = "sluice/own/"
_OWN_PACKAGE = "sluice.own."

def _outputs(srcs, suffix):
    stems = [src[:-len(".proto")] + suffix for src in srcs]
    return struct(hdrs = [stem + ".h" for stem in stems], srcs = [stem + ".cc" for stem in stems])

def _copy(name, srcs):
    """Makes own copies of .proto files. Returns their names."""
    copies = [_OWN + src for src in srcs]
    native.genrule(
        name = name + "_copies",
        srcs = srcs,
        outs = copies,
        cmd = "for source in $(SRCS); do sed 's/^package /&%s/' $$source >$(RULEDIR)/%s$${source#%s/}; done" % (
            _OWN_PACKAGE,
            _OWN,
            _ROOT,
        ),
    )
    return copies

def proto_cc_library(name, srcs, deps = [], grpc = False, own = False, visibility = None):
    """Generates and compiles C++ for srcs, whose imports are relative to //proto.

    Args:
      name: the cc_library. Its sources are visible to dependents as name + "_protos".
      srcs: .proto files of this package.
      deps: proto_cc_library targets that srcs import from.
      grpc: whether srcs define services.
      own: whether srcs are other projects' files, and C++ gets copies with names of Sluice's own: libprotobuf ends a
        process that has two messages of one name, and a program may have those of the other project. The namespace is
        sluice::own::p for the package p, and the header sluice/own/a.pb.h for a.proto. What travels has the same
        bytes, and services keep their names.
      visibility: of the library.
    """
    root = "$(GENDIR)/" + _ROOT if own else _ROOT
    compiled = _copy(name, srcs) if own else srcs
    generated = _outputs(compiled, ".pb")
    services = _outputs(compiled, ".grpc.pb") if grpc else struct(hdrs = [], srcs = [])
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [dep + "_protos" for dep in deps],
        visibility = visibility,
    )
    plugin = "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) --grpc_out=$(GENDIR)/" + _ROOT
    native.genrule(
        name = name + "_generated",
        srcs = [name + "_protos"] + (compiled if own else []),
        outs = generated.hdrs + generated.srcs + services.hdrs + services.srcs,
        cmd = " ".join([
            "protoc -I" + root,
            "--cpp_out=$(GENDIR)/" + _ROOT,
            plugin if grpc else "",
            " ".join(["%s/%s" % (root, src) for src in compiled]),
            " ".join([
                "&& sed -i 's/%s//g' $(GENDIR)/%s/%s" % (_OWN_PACKAGE.replace(".", "[.]"), _ROOT, file)
                for file in (services.srcs + services.hdrs if own else [])
            ]),
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
