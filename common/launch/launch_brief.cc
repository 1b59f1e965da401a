#include "common/launch/launch_brief.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/security/secret.h"
#include "sluice/v1/bootstrap.pb.h"

namespace sluice {
namespace {

absl::Status ForeignBytes(absl::string_view bytes) {
  return absl::DataLossError(
      absl::StrCat("supervisor and program exchanged ", bytes.size(),
                   " bytes that are not a valid message; was the program replaced while it ran?"));
}

v1::ServerIdentity ToProto(const ServerIdentity& server) {
  v1::ServerIdentity message;
  message.set_ticket(EncodeTicket(server.ticket));
  message.set_listen(server.listen);
  message.set_certificate(server.credentials.certificate);
  message.set_key(server.credentials.key);
  message.set_authority(server.credentials.authority);
  return message;
}

absl::StatusOr<ServerIdentity> FromProto(const v1::ServerIdentity& message) {
  auto ticket = DecodeTicket(message.ticket());
  if (!ticket.ok()) return ticket.status();
  ServerIdentity server;
  server.ticket = *std::move(ticket);
  server.listen = message.listen();
  server.credentials = {message.certificate(), message.key(), message.authority()};
  return server;
}

void WipeSecrets(v1::ServerIdentity& message) {
  Wipe(*message.mutable_ticket());
  Wipe(*message.mutable_key());
}

}  // namespace

std::string EncodeBrief(const LaunchBrief& brief) {
  v1::LaunchBrief message;
  message.set_rank(static_cast<uint32_t>(brief.world.rank));
  message.set_size(static_cast<uint32_t>(brief.world.size));
  message.set_one_node(brief.world.one_node);
  message.set_directory(brief.directory);
  message.set_node(static_cast<uint32_t>(brief.world.node));
  for (const std::string& note : brief.notes) message.add_notes(note);
  if (brief.server.has_value()) *message.mutable_server() = ToProto(*brief.server);
  std::string bytes = message.SerializeAsString();
  if (message.has_server()) WipeSecrets(*message.mutable_server());
  return bytes;
}

absl::StatusOr<LaunchBrief> DecodeBrief(absl::string_view bytes) {
  v1::LaunchBrief message;
  const bool parsed = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!parsed || message.size() == 0) return ForeignBytes(bytes);
  LaunchBrief brief;
  brief.world.rank = static_cast<int>(message.rank());
  brief.world.size = static_cast<int>(message.size());
  brief.world.one_node = message.one_node();
  brief.directory = message.directory();
  brief.world.node = static_cast<int>(message.node());
  brief.notes.assign(message.notes().begin(), message.notes().end());
  if (!message.has_server()) return brief;
  auto server = FromProto(message.server());
  WipeSecrets(*message.mutable_server());
  if (!server.ok()) return server.status();
  brief.server = *std::move(server);
  return brief;
}

std::string EncodeIdentity(const absl::StatusOr<ServerIdentity>& server) {
  v1::ServerIdentity message;
  if (server.ok()) {
    message = ToProto(*server);
  } else {
    message.set_failure(std::string(server.status().message()));
  }
  std::string bytes = message.SerializeAsString();
  WipeSecrets(message);
  return bytes;
}

absl::StatusOr<ServerIdentity> DecodeIdentity(absl::string_view bytes) {
  v1::ServerIdentity message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return ForeignBytes(bytes);
  }
  if (!message.failure().empty()) return absl::UnavailableError(message.failure());
  auto server = FromProto(message);
  WipeSecrets(message);
  return server;
}

}  // namespace sluice
