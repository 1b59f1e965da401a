// status, workers, servers, params, tables, watch: they ask the Inspector, and change nothing.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/render/json.h"
#include "tools/ctl/render/parameters_text.h"
#include "tools/ctl/render/servers_text.h"
#include "tools/ctl/render/status_text.h"
#include "tools/ctl/render/tables_text.h"
#include "tools/ctl/render/worker_rows.h"

namespace sluice {
namespace {

struct WorkersFlags {
  std::string sort = "name";
  bool all = false;
};

struct ParamsFlags {
  std::string name;
  uint64_t first = 0;
  uint32_t count = 0;
};

struct TablesFlags {
  std::string name;
  absl::optional<uint64_t> id;
};

struct WatchFlags {
  double interval = 1;  // seconds
  uint64_t changes = 0;
};

absl::Status ShowStatus(const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  const auto state = (*client)->GetState();
  if (!state.ok()) return state.status();
  if (flags.json) {
    std::cout << JsonLine(*state);
    return absl::OkStatus();
  }
  const auto workers = (*client)->ListWorkers();
  if (!workers.ok()) return workers.status();
  std::cout << StatusText(*state, *workers, (*client)->address());
  return absl::OkStatus();
}

// The answer with the rows' workers only, in their order.
v1::ListWorkersResponse Sorted(const std::vector<WorkerRow>& rows) {
  v1::ListWorkersResponse sorted;
  for (const WorkerRow& row : rows) *sorted.add_workers() = row.worker;
  return sorted;
}

std::string WorkersTable(const std::vector<WorkerRow>& rows, bool all) {
  if (rows.empty()) {
    return all ? "no worker has joined\n"
               : "no worker takes part; --all also lists those that have left or were evicted\n";
  }
  std::vector<std::vector<std::string>> cells;
  for (const WorkerRow& row : rows) cells.push_back(WorkerCells(row, false));
  return TableText(WorkerColumns(false), cells);
}

absl::Status ShowWorkers(const WorkersFlags& own, const CommonFlags& flags) {
  const auto key = ParseSortKey(own.sort);
  if (!key.ok()) return key.status();
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  auto state = (*client)->GetState();
  if (!state.ok()) return state.status();
  auto workers = (*client)->ListWorkers();
  if (!workers.ok()) return workers.status();
  std::vector<WorkerRow> rows = RowsOf({RealClock().Now(), *std::move(state), *std::move(workers)});
  const auto left = [&own](const WorkerRow& row) { return !own.all && !TakesPart(row.worker); };
  rows.erase(std::remove_if(rows.begin(), rows.end(), left), rows.end());
  SortRows(*key, rows);
  std::cout << (flags.json ? JsonLine(Sorted(rows)) : WorkersTable(rows, own.all));
  return absl::OkStatus();
}

absl::Status ShowServers(const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  const auto servers = (*client)->ListServers();
  if (!servers.ok()) return servers.status();
  std::cout << (flags.json ? JsonLine(*servers) : ServersText(*servers));
  return absl::OkStatus();
}

absl::Status ShowParams(const ParamsFlags& own, const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  if (own.name.empty()) {
    const auto parameters = (*client)->ListParameters();
    if (!parameters.ok()) return parameters.status();
    std::cout << (flags.json ? JsonLine(*parameters) : ParametersText(*parameters));
    return absl::OkStatus();
  }
  v1::GetParameterRequest request;
  request.set_name(own.name);
  request.set_first(own.first);
  request.set_count(own.count);
  const auto parameter = (*client)->GetParameter(request);
  if (!parameter.ok()) return parameter.status();
  std::cout << (flags.json ? JsonLine(*parameter) : ParameterText(*parameter));
  return absl::OkStatus();
}

// All tables, or the one of that name with its hottest rows.
absl::Status ListTables(OperatorClient& client, const std::string& name, const CommonFlags& flags) {
  const auto tables = client.ListTables();
  if (!tables.ok()) return tables.status();
  if (name.empty()) {
    std::cout << (flags.json ? JsonLine(*tables) : TablesText(*tables));
    return absl::OkStatus();
  }
  v1::ListTablesResponse named;
  for (const v1::TableState& state : tables->tables()) {
    if (state.table().name() == name) *named.add_tables() = state;
  }
  if (named.tables().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no table \"", name, "\"; sluicectl tables without a name lists all of them"));
  }
  const v1::TableState& table = named.tables(0);
  std::cout << (flags.json ? JsonLine(table) : TablesText(named) + "\n" + HottestText(table));
  return absl::OkStatus();
}

absl::Status ShowTables(const TablesFlags& own, const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  if (!own.id.has_value()) return ListTables(**client, own.name, flags);
  v1::GetRowRequest request;
  request.set_table(own.name);
  request.set_id(*own.id);
  const auto row = (*client)->GetRow(request);
  if (!row.ok()) return row.status();
  std::cout << (flags.json ? JsonLine(*row) : RowText(request, *row));
  return absl::OkStatus();
}

absl::Status Watch(const WatchFlags& own, const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  uint64_t shown = 0;
  return (*client)->WatchState(absl::Seconds(own.interval), [&](const v1::ServerState& state) {
    std::cout << (flags.json ? JsonLine(state) : WatchLine(state)) << std::flush;
    ++shown;
    return std::cout.good() && shown != own.changes;
  });
}

void AddParams(CLI::App& app, std::vector<Command>& commands) {
  auto own = std::make_shared<ParamsFlags>();
  CLI::App& params = *app.add_subcommand(
      "params", "lists the tensors of the model, or shows statistics and values of one");
  params.add_option("name", own->name, "a tensor, as the list shows it");
  params.add_option("--first", own->first, "index of the first value to show, in the flat tensor")
      ->capture_default_str();
  params
      .add_option(
          "--count", own->count,
          "how many values to show, at most 1024; 0: all if there are at most 16, else none")
      ->capture_default_str();
  commands.push_back(
      {&params, [own](const CommonFlags& flags) { return ShowParams(*own, flags); }});
}

void AddTables(CLI::App& app, std::vector<Command>& commands) {
  auto own = std::make_shared<TablesFlags>();
  CLI::App& tables = *app.add_subcommand(
      "tables",
      "lists the tables of the model, or shows one, or a row of one and its optimizer's slots");
  tables.add_option("name", own->name, "a table, as the list shows it: also its hottest rows");
  tables.add_option("id", own->id, "the id of a row");
  commands.push_back(
      {&tables, [own](const CommonFlags& flags) { return ShowTables(*own, flags); }});
}

void AddWatch(CLI::App& app, std::vector<Command>& commands) {
  auto own = std::make_shared<WatchFlags>();
  CLI::App& watch =
      *app.add_subcommand("watch", "prints a line now and after each change, until the job ends");
  watch.add_option("--interval", own->interval, "shortest time between two lines, in seconds")
      ->check(NumberFrom(0.1, 1e6))
      ->capture_default_str();
  watch.add_option("--changes", own->changes, "end after so many lines; 0: go on")
      ->capture_default_str();
  commands.push_back({&watch, [own](const CommonFlags& flags) { return Watch(*own, flags); }});
}

}  // namespace

void AddLookCommands(CLI::App& app, std::vector<Command>& commands) {
  commands.push_back(
      {app.add_subcommand("status", "shows the state of the server on one screen"), ShowStatus});
  auto own = std::make_shared<WorkersFlags>();
  CLI::App& workers = *app.add_subcommand("workers", "lists the workers");
  workers.add_option("--sort", own->sort, "order of the rows")
      ->check(CLI::IsMember(SortNames()))
      ->capture_default_str();
  workers.add_flag("--all", own->all, "also those that have left or were evicted");
  commands.push_back(
      {&workers, [own](const CommonFlags& flags) { return ShowWorkers(*own, flags); }});
  commands.push_back({app.add_subcommand("servers", "lists the servers of the job"), ShowServers});
  AddParams(app, commands);
  AddTables(app, commands);
  AddWatch(app, commands);
}

}  // namespace sluice
