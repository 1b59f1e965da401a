"""A package of npm that tools/setup has installed, as a repository of its files."""

def _npm_package(ctx):
    cache = ctx.os.environ.get("XDG_CACHE_HOME", "")
    if not cache:
        cache = ctx.os.environ.get("HOME", "/root") + "/.cache"
    folder = ctx.path("%s/sluice/%s/node_modules/%s" % (cache, ctx.attr.kind, ctx.attr.package))
    if not folder.exists:
        fail("%s is missing in %s. Run tools/setup, which installs it." % (ctx.attr.package, folder))
    for entry in {file.split("/")[0]: None for file in ctx.attr.files}.keys():
        ctx.symlink(folder.get_child(entry), entry)
    ctx.file("BUILD.bazel", "exports_files(%s)" % ctx.attr.files)

npm_package = repository_rule(
    implementation = _npm_package,
    attrs = {
        "files": attr.string_list(doc = "the files that are used"),
        "kind": attr.string(doc = "the folder of the cache; see install_npm_packages in tools/setup"),
        "package": attr.string(doc = "the name of the package"),
    },
    environ = [
        "HOME",
        "XDG_CACHE_HOME",
    ],
    local = True,
)
