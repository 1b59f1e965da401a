#include "tools/ctl/render/servers_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/settings.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

std::string ConnectionText(const v1::Server& server) {
  if (!server.has_since()) return "not come yet";
  return absl::StrCat(server.connected() ? "connected " : "away ",
                      TimeText(FromProto(server.since())));
}

std::string TaskText(const v1::Server& server) {
  if (server.awaited().empty()) return "-";
  const std::string what = Printable(server.awaited());
  if (!server.has_awaited_since()) return what;
  return absl::StrCat(what, ", for ", TimeText(FromProto(server.awaited_since())));
}

std::vector<std::string> CellsOf(const v1::Server& server) {
  return {absl::StrCat(server.index()),
          server.address().empty() ? "-" : Printable(server.address()),
          ConnectionText(server),
          server.has_step() ? absl::StrCat(server.step()) : "-",
          absl::StrCat(server.elements()),
          BytesText(server.bytes()),
          BytesText(server.wire_bytes_received()),
          BytesText(server.wire_bytes_sent()),
          TaskText(server)};
}

}  // namespace

std::string ServersText(const v1::ListServersResponse& servers) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::Server& server : servers.servers()) rows.push_back(CellsOf(server));
  return TableText({{"SERVER", true},
                    {"ADDRESS"},
                    {"CONNECTION"},
                    {"STEP", true},
                    {"ELEMENTS", true},
                    {"SIZE", true},
                    {"RECEIVED", true},
                    {"SENT", true},
                    {"AWAITED"}},
                   rows);
}

}  // namespace sluice
