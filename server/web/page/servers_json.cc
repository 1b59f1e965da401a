#include "server/web/page/servers_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/observe/readings.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

// Ids have 64 bits, of which a script's number has room for 53.
Json Hottest(const v1::TableState& table) {
  Json list = Json::array();
  for (const v1::HotRow& row : table.hottest()) {
    list.push_back({{"id", std::to_string(row.id())}, {"reads", row.reads()}});
  }
  return list;
}

}  // namespace

Json ServersJson(const JobMoment& moment) {
  Json list = Json::array();
  for (const v1::Server& server : moment.servers) {
    const auto awaited = SecondsAwaited(moment.state, server);
    list.push_back({{"address", server.address()},
                    {"connected", server.connected()},
                    {"since", server.has_since() ? Json(Seconds(server.since())) : Json()},
                    {"awaited", awaited.has_value() ? Json(*awaited) : Json()},
                    {"elements", server.elements()},
                    {"step", server.has_step() ? Json(server.step()) : Json()},
                    {"wire_bytes_received", server.wire_bytes_received()},
                    {"wire_bytes_sent", server.wire_bytes_sent()}});
  }
  return list;
}

Json TablesJson(const JobMoment& moment) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(moment.tables.size(), kMostShownTables); ++i) {
    const v1::TableState& table = moment.tables[i];
    list.push_back({{"name", table.table().name()},
                    {"rows", table.rows()},
                    {"bytes", table.bytes()},
                    {"reads", table.reads()},
                    {"hits", table.hits()},
                    {"mean_age", table.mean_age()},
                    {"hottest", Hottest(table)}});
  }
  return {{"count", moment.tables.size()}, {"first", std::move(list)}};
}

}  // namespace sluice
