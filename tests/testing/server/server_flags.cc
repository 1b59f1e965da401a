#include "tests/testing/server/server_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/launch/rank_note.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

ServerFlags ParseServerFlags(std::vector<std::string> arguments) {
  CLI::App app;
  ServerFlags flags;
  AddServerFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    ADD_FAILURE() << error.what();
  }
  return flags;
}

MpiWorld RanksOnOneNode(int size) {
  MpiWorld world;
  world.size = size;
  return world;
}

MpiWorld RanksOnManyNodes(int size) {
  MpiWorld world = RanksOnOneNode(size);
  world.one_node = false;
  return world;
}

absl::StatusOr<LaunchedServer> Launch(const std::vector<std::string>& arguments,
                                      const MpiWorld& world) {
  LaunchBrief brief = {world};
  for (int rank = 0; rank < world.size; ++rank) {
    brief.notes.push_back(EncodeNote({world.one_node ? 0 : rank}));
  }
  return StartLaunchedServer(ParseServerFlags(arguments), brief);
}

absl::StatusOr<Welcome> JoinWith(const JobTicket& ticket, absl::Duration timeout) {
  GrpcConnectionOptions options;
  options.connect_timeout = timeout;
  options.address = ticket.address;
  options.token = ticket.token;
  if (!ticket.credentials.key.empty()) options.credentials = SourceOf(ticket.credentials);
  const auto connection = ConnectOverGrpc(options);
  if (!connection.ok()) return connection.status();
  JoinRequest request = WorkerRequest("a");
  request.job_id = ticket.job_id;
  return (*connection)->Join(request);
}

}  // namespace sluice
