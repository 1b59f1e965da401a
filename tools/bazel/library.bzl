"""The library of a folder, and programs."""

# Of sources that see many headers and have no loop that matters: they compile in two thirds of the time.
COLD = ["-O1"]

# Sources as one. The compiler's messages and the debugger then name the source, not the copy.
JOIN = "for source in $(SRCS); do echo \"#line 1 \\\"$$source\\\"\"; cat $$source; done > $@"

_PRECOMPILED = "//tools/bazel/precompiled:"

def _with_precompiled(deps, copts, **kwargs):
    """Adds to a target the header that was compiled with its options, if there is one. Clang compiles without it."""
    if not copts:
        header = "hot"
    elif copts != COLD:
        return dict(kwargs, deps = deps, copts = copts)
    elif "@system//:torch" in deps:
        header = "torch"
    else:
        header = "cold"
    include = ["-include", "$(BINDIR)/tools/bazel/precompiled/%s.h" % header]
    return dict(
        kwargs,
        copts = copts + select({_PRECOMPILED + "clang": [], "//conditions:default": include}),
        deps = deps + select({_PRECOMPILED + "clang": [], "//conditions:default": [_PRECOMPILED + header]}),
    )

def sluice_library(name, deps = [], exclude = [], private = [], separate = False, copts = [], **kwargs):
    """Makes one library of all headers and sources of a folder, but for its main programs.

    The sources are compiled as one: their headers (LibTorch's, gRPC's, CLI11's) take far longer to compile
    than the code does, and so are compiled once for a folder. Names in anonymous namespaces must therefore
    differ within a folder.

    Args:
      name: of the library; that of the folder where the folder has no program of that name.
      deps: the libraries of other folders, and foreign ones.
      exclude: files that are not part of it.
      private: headers that only its own sources include.
      separate: compile each source by itself.
      copts: COLD, others, or none.
      **kwargs: as for cc_library.
    """
    sources = native.glob(["*.cc"], exclude = ["*_main.cc"] + exclude)
    together = name + "_sources.cc"
    if sources and not separate:
        native.genrule(
            name = name + "_sources",
            srcs = sources,
            outs = [together],
            cmd = JOIN,
        )
    native.cc_library(
        name = name,
        srcs = (sources if separate or not sources else [together]) + private,
        hdrs = native.glob(["*.h"], exclude = exclude + private),
        **_with_precompiled(deps, copts, **kwargs)
    )

def sluice_part(name, deps, copts = [], **kwargs):
    """Makes a library of some sources of a folder.

    Args:
      name: of the library.
      deps: what it uses.
      copts: COLD, others, or none.
      **kwargs: as for cc_library.
    """
    native.cc_library(name = name, **_with_precompiled(deps, copts, **kwargs))

def sluice_program(name, deps, **kwargs):
    """Makes a program, whose main source has no loop that matters.

    Args:
      name: of the program.
      deps: what it uses.
      **kwargs: as for cc_binary.
    """
    native.cc_binary(name = name, **_with_precompiled(deps, COLD, **kwargs))
