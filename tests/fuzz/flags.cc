// Command lines: of a server, whose configuration is printed as JSON that is read again, and of a
// worker's optimizer, whose options a server takes.
#include <glog/logging.h>
#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/protocol/optimizer_config.h"
#include "common/wire/messages.h"
#include "server/program/server_flags.h"
#include "sluice/v1/config.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "worker/program/optimizer_flags.h"

namespace sluice {
namespace {

// One argument in each line.
bool Parse(CLI::App& app, absl::string_view lines) {
  const std::vector<std::string> arguments = absl::StrSplit(lines, '\n');
  std::vector<const char*> argv = {"program"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  try {
    ParseArguments(app, static_cast<int>(argv.size()), argv.data());
    return true;
  } catch (const CLI::ParseError& error) {
    CHECK(std::string(error.what()) != "");
    return false;
  }
}

void TryServer(absl::string_view lines) {
  CLI::App app;
  ServerFlags flags;
  AddServerFlags(app, flags);
  if (!Parse(app, lines)) return;
  // Files are for other tests.
  flags.token_file.clear();
  flags.security.tls = {};
  const auto text = DescribeConfig(flags);
  if (!text.ok()) return CheckRefusal(text.status(), {absl::StatusCode::kInvalidArgument});
  v1::ServerConfig config;
  const auto read = google::protobuf::util::JsonStringToMessage(*text, &config);
  CHECK(read.ok()) << *text << read.ToString();
  const auto consistency = FromProto(config.consistency());
  CHECK(consistency.ok()) << consistency.status();
}

void TryOptimizer(absl::string_view lines) {
  CLI::App app;
  OptimizerFlags flags;
  AddOptimizerFlags(app, flags);
  if (!Parse(app, lines)) return;
  const auto options = OptimizerFrom(flags);
  if (!options.ok()) return CheckRefusal(options.status(), {absl::StatusCode::kInvalidArgument});
  const OptimizerConfig config = {*options};
  const auto received = FromProto(ToProto(config));
  CHECK(received.ok()) << received.status();
  CHECK(CheckSameOptimizer(config, *received).ok());
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool server = input.Byte() % 2 == 0;
  if (server) return TryServer(input.Rest());
  TryOptimizer(input.Rest());
}

}  // namespace sluice
