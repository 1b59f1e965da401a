"""The library of a folder."""

# Of sources that see many headers and have no loop that matters: they compile in two thirds of the time.
COLD = ["-O1"]

# Sources as one. The compiler's messages and the debugger then name the source, not the copy.
JOIN = "for source in $(SRCS); do echo \"#line 1 \\\"$$source\\\"\"; cat $$source; done > $@"

def sluice_library(name, deps = [], exclude = [], separate = False, **kwargs):
    """Makes one library of all headers and sources of a folder, but for its main programs.

    The sources are compiled as one: their headers (LibTorch's, gRPC's, CLI11's) take far longer to compile
    than the code does, and so are compiled once for a folder. Names in anonymous namespaces must therefore
    differ within a folder.

    Args:
      name: of the library; that of the folder where the folder has no program of that name.
      deps: the libraries of other folders, and foreign ones.
      exclude: files that are not part of it.
      separate: compile each source by itself.
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
        srcs = sources if separate or not sources else [together],
        hdrs = native.glob(["*.h"], exclude = exclude),
        deps = deps,
        **kwargs
    )
