// top: the job, live in the terminal.

#include <memory>
#include <string>

#include "common/base/command_line.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/render/worker_rows.h"
#include "tools/ctl/top/top.h"

namespace sluice {
namespace {

struct TopFlags {
  std::string sort = "lag";
  double interval = 1;  // seconds
};

absl::Status ShowTop(const TopFlags& own, const CommonFlags& flags) {
  const auto key = ParseSortKey(own.sort);
  if (!key.ok()) return key.status();
  auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  return RunTop(*std::move(client), {absl::Seconds(own.interval), *key,
                                     absl::Seconds(flags.connection.connect_timeout)});
}

}  // namespace

void AddTopCommand(CLI::App& app, std::vector<Command>& commands) {
  auto own = std::make_shared<TopFlags>();
  CLI::App& top = *app.add_subcommand("top", "shows the job and its workers live in the terminal");
  top.add_option("--sort", own->sort, "order of the rows at first")
      ->check(CLI::IsMember(SortNames()))
      ->capture_default_str();
  top.add_option("--interval", own->interval, "time between two looks at the server, in seconds")
      ->check(NumberFrom(0.1, 1e6))
      ->capture_default_str();
  commands.push_back({&top, [own](const CommonFlags& flags) { return ShowTop(*own, flags); }});
}

}  // namespace sluice
