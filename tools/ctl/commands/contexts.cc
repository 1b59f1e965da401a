#include "tools/ctl/commands/contexts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/file_descriptor.h"
#include "common/base/input_file.h"
#include "common/base/random.h"

namespace sluice {
namespace {

using ContextJson = nlohmann::ordered_json;

constexpr uint64_t kLargestFile = 1 << 20;

struct Field {
  const char* key;
  std::string Context::*value;
};

constexpr Field kFields[] = {{"server", &Context::server},
                             {"token_file", &Context::token_file},
                             {"tls_cert", &Context::tls_cert},
                             {"tls_key", &Context::tls_key},
                             {"tls_ca", &Context::tls_ca}};
constexpr char kInsecureOnNetwork[] = "insecure_on_network";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status WrongFile(const std::string& path, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", what));
}

absl::Status NoContexts(const absl::Status& why) {
  return absl::FailedPreconditionError(
      absl::StrCat(why.message(), "; remove it, or set SLUICE_CONTEXTS to a file of contexts"));
}

absl::Status SystemError(const std::string& path) { return WrongFile(path, strerror(errno)); }

// Whether the file may be trusted.
absl::Status CheckFile(const std::string& path, const struct stat& facts) {
  const bool others_write = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write || (facts.st_uid != geteuid() && facts.st_uid != 0)) {
    return WrongFile(path, absl::StrCat("other users may write it, and so could have your token "
                                        "sent to a server of theirs; run chmod 600 ",
                                        path));
  }
  return absl::OkStatus();
}

absl::StatusOr<Context> ContextFrom(const ContextJson& json) {
  Context context;
  for (const auto& [key, value] : json.items()) {
    const auto* const field =
        std::find_if(std::begin(kFields), std::end(kFields),
                     [&key = key](const Field& known) { return key == known.key; });
    if (field != std::end(kFields) && value.is_string()) {
      context.*field->value = value.get<std::string>();
    } else if (key == kInsecureOnNetwork && value.is_boolean()) {
      context.insecure_on_network = value.get<bool>();
    } else {
      return absl::InvalidArgumentError(absl::StrCat("\"", Shown(key),
                                                     "\" is unknown or has a "
                                                     "value of a wrong type"));
    }
  }
  return context;
}

ContextJson JsonOf(const Context& context) {
  ContextJson json = ContextJson::object();
  for (const Field& field : kFields) {
    if (!(context.*field.value).empty()) json[field.key] = context.*field.value;
  }
  if (context.insecure_on_network) json[kInsecureOnNetwork] = true;
  return json;
}

// `indent` as for dump(): -1 is one line.
std::string TextOf(const Contexts& contexts, int indent) {
  ContextJson all = ContextJson::object();
  for (const auto& [name, context] : contexts.all) all[name] = JsonOf(context);
  const ContextJson json = {{"current", contexts.current}, {"contexts", all}};
  return json.dump(indent, ' ', true, ContextJson::error_handler_t::replace);
}

absl::StatusOr<Contexts> ContextsFrom(const ContextJson& json) {
  const absl::Status wrong =
      absl::InvalidArgumentError("expected an object with \"current\" and \"contexts\"");
  if (!json.is_object()) return wrong;
  Contexts contexts;
  for (const auto& [key, value] : json.items()) {
    if (key == "current" && value.is_string()) {
      contexts.current = value.get<std::string>();
    } else if (key != "contexts" || !value.is_object()) {
      return wrong;
    }
  }
  if (!json.contains("contexts")) return contexts;
  for (const auto& [name, value] : json["contexts"].items()) {
    if (!value.is_object()) return wrong;
    auto context = ContextFrom(value);
    if (!context.ok()) return context.status();
    contexts.all[name] = *std::move(context);
  }
  return contexts;
}

absl::Status WriteNewFile(const std::string& path, const std::string& text) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return SystemError(path);
  for (size_t written = 0; written < text.size();) {
    const ssize_t more = write(file.get(), text.data() + written, text.size() - written);
    if (more < 0) return SystemError(path);
    written += static_cast<size_t>(more);
  }
  return fsync(file.get()) == 0 ? absl::OkStatus() : SystemError(path);
}

absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::exists(folder, error)) return absl::OkStatus();
  const absl::Status above = MakeFolder(folder.parent_path());
  if (!above.ok()) return above;
  return mkdir(folder.c_str(), 0700) == 0 ? absl::OkStatus() : SystemError(folder);
}

}  // namespace

absl::StatusOr<Context> Contexts::Find(const std::string& name) const {
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& known : all) names.push_back(known.first);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no context \"", Shown(name), "\"; ",
                   names.empty() ? "context add makes one"
                                 : absl::StrCat("expected one of ", absl::StrJoin(names, ", "))));
}

absl::StatusOr<std::string> ContextsPath() {
  const std::string named = Variable("SLUICE_CONTEXTS");
  if (!named.empty()) return named;
  const std::string config = Variable("XDG_CONFIG_HOME");
  if (!config.empty()) return config + "/sluice/contexts.json";
  const std::string home = Variable("HOME");
  if (!home.empty()) return home + "/.config/sluice/contexts.json";
  return absl::InvalidArgumentError(
      "found neither SLUICE_CONTEXTS nor HOME in the environment, expected one to find the file "
      "of contexts; set SLUICE_CONTEXTS to its path");
}

absl::StatusOr<Contexts> ReadContexts(const std::string& path) {
  const auto file = OpenInput(path);
  if (absl::IsNotFound(file.status())) return Contexts();
  if (!file.ok()) return NoContexts(file.status());
  const absl::Status sound = CheckFile(path, file->facts);
  if (!sound.ok()) return sound;
  const auto text = ReadInput(*file, path, kLargestFile);
  if (!text.ok()) return NoContexts(text.status());
  const auto json = ContextJson::parse(*text, nullptr, false);
  auto contexts = ContextsFrom(json);
  if (!contexts.ok()) {
    const absl::string_view what =
        json.is_discarded() ? "it is no JSON" : contexts.status().message();
    return WrongFile(path,
                     absl::StrCat(what, "; mend it, or remove it and add the contexts again"));
  }
  return contexts;
}

std::string ContextsJson(const Contexts& contexts) { return TextOf(contexts, -1); }

absl::Status WriteContexts(const std::string& path, const Contexts& contexts) {
  const absl::Status made = MakeFolder(std::filesystem::path(path).parent_path());
  if (!made.ok()) return made;
  const std::string unfinished = absl::StrCat(path, ".", RandomHex(4));
  absl::Status written = WriteNewFile(unfinished, TextOf(contexts, 2) + "\n");
  if (written.ok() && rename(unfinished.c_str(), path.c_str()) != 0) written = SystemError(path);
  if (!written.ok()) unlink(unfinished.c_str());
  return written;
}

absl::Status CheckContextName(const std::string& name) {
  constexpr size_t kLongest = 64;
  const bool sound = std::all_of(name.begin(), name.end(), [](char letter) {
    return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '.' ||
           letter == '-' || letter == '_';
  });
  if (sound && !name.empty() && name.size() <= kLongest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found the name \"", Shown(name),
                                                 "\" of a context, expected 1 to ", kLongest,
                                                 " letters, digits, dots, dashes and underscores"));
}

}  // namespace sluice
