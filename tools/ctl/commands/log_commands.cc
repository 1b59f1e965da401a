// logs: what the server's process has logged, which Admin tells.

#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/wire/settings.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/render/json.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

struct LogsFlags {
  uint32_t lines = 100;
  bool follow = false;
};

// "2026-11-24 15:09:01.250 WARNING text", in the time zone of this machine.
std::string LogText(const v1::LogLine& line) {
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%E3S", FromProto(line.time()), absl::LocalTimeZone()), " ",
      Printable(line.severity()), " ", Printable(line.text()), "\n");
}

void PrintLines(const v1::ReadLogsResponse& response, bool json) {
  if (response.missed() > 0 && !json) {
    std::cout << "(" << CountText(response.missed(), "line") << " came too fast to be sent)\n";
  }
  for (const v1::LogLine& line : response.lines()) {
    std::cout << (json ? JsonLine(line) : LogText(line));
  }
  std::cout << std::flush;
}

absl::Status ShowLogs(const LogsFlags& own, const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  v1::ReadLogsRequest request;
  request.set_lines(own.lines);
  request.set_follow(own.follow);
  return (*client)->ReadLogs(request, [&flags](const v1::ReadLogsResponse& response) {
    PrintLines(response, flags.json);
    return std::cout.good();
  });
}

}  // namespace

void AddLogCommands(CLI::App& app, std::vector<Command>& commands) {
  auto own = std::make_shared<LogsFlags>();
  CLI::App& logs = *app.add_subcommand("logs", "prints the latest lines of the server's log");
  logs.add_option("--lines", own->lines, "how many of the latest lines")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  logs.add_flag("--follow", own->follow, "go on with lines that come, until the server ends");
  commands.push_back({&logs, [own](const CommonFlags& flags) { return ShowLogs(*own, flags); }});
}

}  // namespace sluice
