"""A precompiled header for gcc. Other compilers get the plain header, which has the same effect."""

def _precompiled_header_impl(ctx):
    toolchain = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-compile",
    )
    deps = [dep[CcInfo] for dep in ctx.attr.deps]
    context = cc_common.merge_cc_infos(cc_infos = deps).compilation_context

    # The compiler finds the precompiled header beside the header that it is asked for.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.file.hdr)
    files = [header]
    if "clang" not in compiler:
        compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
        cpp = ctx.fragments.cpp
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = cpp.copts + cpp.cxxopts + ctx.attr.copts,
            use_pic = True,  # .bazelrc: --force_pic
            source_file = ctx.file.hdr.path,
            output_file = compiled.path,
            quote_include_directories = depset(["."], transitive = [context.quote_includes]),
            system_include_directories = context.system_includes,
        )
        flags = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        )
        ctx.actions.run(
            executable = compiler,
            arguments = ["-x", "c++-header"] + flags,
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = "c++-compile",
                variables = variables,
            ),
            inputs = depset([ctx.file.hdr], transitive = [toolchain.all_files, context.headers]),
            outputs = [compiled],
            mnemonic = "PrecompileHeader",
            progress_message = "Precompiling %s" % ctx.file.hdr.short_path,
        )
        files.append(compiled)
    own = CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files)))
    return [
        DefaultInfo(files = depset(files)),
        cc_common.merge_cc_infos(direct_cc_infos = [own], cc_infos = deps),
    ]

precompiled_header = rule(
    doc = """Compiles a header of system headers, for targets that depend on it and are compiled with
`copts` and `-include $(BINDIR)/PACKAGE/NAME.h`. With other options, gcc ignores what was precompiled.""",
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
