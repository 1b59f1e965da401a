// context: names servers in a file, with the paths of their credentials.

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/address.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/commands/contexts.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

// The contexts of the file, and its path.
struct OpenedContexts {
  std::string path;
  Contexts contexts;
};

absl::StatusOr<OpenedContexts> OpenContexts() {
  auto path = ContextsPath();
  if (!path.ok()) return path.status();
  auto contexts = ReadContexts(*path);
  if (!contexts.ok()) return contexts.status();
  return OpenedContexts{*std::move(path), *std::move(contexts)};
}

absl::Status Store(const OpenedContexts& opened, const std::string& done,
                   const CommonFlags& flags) {
  const absl::Status written = WriteContexts(opened.path, opened.contexts);
  if (written.ok() && !flags.quiet) std::cout << done << "\n";
  return written;
}

// The path from anywhere; empty stays empty.
std::string Everywhere(const std::string& path) {
  if (path.empty()) return "";
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

Context ContextOf(const ConnectionFlags& flags) {
  Context context;
  context.server = flags.server;
  context.token_file = Everywhere(flags.token_file);
  context.tls_cert = Everywhere(flags.security.tls.certificate);
  context.tls_key = Everywhere(flags.security.tls.key);
  context.tls_ca = Everywhere(flags.security.tls.authority);
  context.insecure_on_network = flags.security.insecure_on_network;
  return context;
}

// Refuses what no later command could use.
absl::Status CheckUsable(const ConnectionFlags& flags) {
  if (flags.server.empty()) {
    return absl::InvalidArgumentError(
        "found no address of a server for the context, expected --server=host:port or "
        "--server=unix:/path");
  }
  const auto address = ParseAddress(flags.server);
  if (!address.ok()) return WrongCommandLine(address.status());
  return CredentialsAt(flags.security, *address).status();
}

absl::Status AddContext(const std::string& name, const CommonFlags& flags) {
  absl::Status sound = CheckContextName(name);
  sound.Update(CheckUsable(flags.connection));
  if (!sound.ok()) return sound;
  auto opened = OpenContexts();
  if (!opened.ok()) return opened.status();
  Contexts& contexts = opened->contexts;
  const bool is_new = contexts.all.count(name) == 0;
  contexts.all[name] = ContextOf(flags.connection);
  if (contexts.current.empty()) contexts.current = name;
  return Store(*opened,
               absl::StrCat(is_new ? "added " : "replaced ", name,
                            contexts.current == name ? ", which is the current one" : ""),
               flags);
}

absl::Status UseContext(const std::string& name, const CommonFlags& flags) {
  auto opened = OpenContexts();
  if (!opened.ok()) return opened.status();
  const auto found = opened->contexts.Find(name);
  if (!found.ok()) return found.status();
  opened->contexts.current = name;
  return Store(*opened, absl::StrCat("using ", name, ": ", Printable(found->server)), flags);
}

absl::Status RemoveContext(const std::string& name, const CommonFlags& flags) {
  auto opened = OpenContexts();
  if (!opened.ok()) return opened.status();
  const auto found = opened->contexts.Find(name);
  if (!found.ok()) return found.status();
  opened->contexts.all.erase(name);
  if (opened->contexts.current == name) opened->contexts.current.clear();
  return Store(*opened, absl::StrCat("removed ", name), flags);
}

std::string AccessText(const Context& context) {
  std::string text = context.tls_cert.empty()
                         ? (context.insecure_on_network ? "plaintext on a network" : "plaintext")
                         : absl::StrCat("TLS with ", context.tls_cert);
  if (!context.token_file.empty()) absl::StrAppend(&text, ", token in ", context.token_file);
  return Printable(text);
}

absl::Status ListContexts(const CommonFlags& flags) {
  const auto opened = OpenContexts();
  if (!opened.ok()) return opened.status();
  const Contexts& contexts = opened->contexts;
  if (flags.json) {
    std::cout << ContextsJson(contexts) << "\n";
    return absl::OkStatus();
  }
  if (contexts.all.empty()) {
    std::cout << "no contexts; sluicectl context add NAME --server=host:port adds one\n";
    return absl::OkStatus();
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, context] : contexts.all) {
    rows.push_back({name == contexts.current ? "*" : "", Printable(name), Printable(context.server),
                    AccessText(context)});
  }
  std::cout << TableText({{""}, {"NAME"}, {"SERVER"}, {"ACCESS"}}, rows);
  return absl::OkStatus();
}

using NamedContextCommand = absl::Status (*)(const std::string& name, const CommonFlags& flags);

void AddNamed(CLI::App& context, const std::string& word, const std::string& help,
              NamedContextCommand run, std::vector<Command>& commands) {
  auto name = std::make_shared<std::string>();
  CLI::App& app = *context.add_subcommand(word, help);
  app.add_option("name", *name, "the name of a context")->required();
  commands.push_back({&app, [name, run](const CommonFlags& flags) { return run(*name, flags); }});
}

}  // namespace

void AddContextCommands(CLI::App& app, std::vector<Command>& commands) {
  CLI::App& context =
      *app.add_subcommand("context", "names servers, so that --server need not be given");
  context.require_subcommand(1);
  AddNamed(context, "add",
           "names the server of --server, with --token-file and the flags of TLS; the first one "
           "becomes the current one",
           AddContext, commands);
  AddNamed(context, "use", "makes a context the current one", UseContext, commands);
  commands.push_back(
      {context.add_subcommand("list", "lists the contexts; * is the current one"), ListContexts});
  AddNamed(context, "remove", "removes a context", RemoveContext, commands);
}

}  // namespace sluice
