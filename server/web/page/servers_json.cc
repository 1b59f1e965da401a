#include "server/web/page/servers_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using Json = nlohmann::json;

// Ids have 64 bits, of which a script's number has room for 53.
Json Hottest(const std::vector<HotRow>& rows) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(rows.size(), HotRow::kMost); ++i) {
    list.push_back({{"id", std::to_string(rows[i].id)}, {"reads", rows[i].reads}});
  }
  return list;
}

}  // namespace

Json ServersJson(const ShardStatus& state) {
  Json list = Json::array();
  const auto seconds = [](const absl::optional<absl::Duration>& time) {
    return time.has_value() ? Json(absl::ToDoubleSeconds(*time)) : Json(nullptr);
  };
  for (const ServerStatus& server : state.each_server) {
    const StripeFigures& figures = server.figures;
    list.push_back(
        {{"address", server.address},
         {"connected", server.connected},
         {"since", seconds(server.unchanged)},
         {"awaited", seconds(server.awaited)},
         {"elements", server.elements},
         {"step", figures.step.has_value() ? Json(figures.step->value()) : Json(nullptr)},
         {"wire_bytes_received", figures.wire_bytes_received},
         {"wire_bytes_sent", figures.wire_bytes_sent}});
  }
  return list;
}

Json TablesJson(const ShardStatus& state) {
  const std::vector<TableStatus> totals = state.table_totals();
  Json list = Json::array();
  for (size_t i = 0; i < std::min(totals.size(), kMostShownTables); ++i) {
    const TableStatus& table = totals[i];
    list.push_back({{"name", state.layout->tables()[i].name},
                    {"rows", table.rows},
                    {"bytes", table.bytes},
                    {"reads", table.reads},
                    {"hits", table.hits},
                    {"mean_age", table.mean_age()},
                    {"hottest", Hottest(table.hottest)}});
  }
  return {{"count", totals.size()}, {"first", std::move(list)}};
}

}  // namespace sluice
