#include "server/rpc/listening/counted_calls.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// An empty object if there is nothing. Frees `json`.
Struct ParseJson(char* json) {
  Struct object;
  if (json == nullptr) return object;
  const bool parsed = google::protobuf::util::JsonStringToMessage(json, &object).ok();
  gpr_free(json);
  return parsed ? object : Struct();
}

const Value& Field(const Struct& object, const char* name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? Value::default_instance() : found->second;
}

const Struct& ObjectIn(const Struct& object, const char* name) {
  return Field(object, name).struct_value();
}

// gRPC writes 64-bit numbers as text, and leaves zeros out.
int64_t NumberIn(const Struct& object, const char* name) {
  int64_t number = 0;
  return absl::SimpleAtoi(Field(object, name).string_value(), &number) ? number : 0;
}

std::string PeerName(absl::string_view ip, uint16_t port) {
  std::string name(ip);
  name += static_cast<char>(port >> 8);
  name += static_cast<char>(port & 0xff);
  return name;
}

std::string PeerIn(const Struct& connection) {
  const Struct& where = ObjectIn(ObjectIn(connection, "remote"), "tcpip_address");
  std::string ip;
  if (!absl::Base64Unescape(Field(where, "ip_address").string_value(), &ip) || ip.empty()) {
    return "";
  }
  return PeerName(ip, static_cast<uint16_t>(Field(where, "port").number_value()));
}

absl::string_view Bytes(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

}  // namespace

std::string PeerOf(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size);
  if (name.ss_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(&name);
    return PeerName(Bytes(&ipv4->sin_addr, 4), ntohs(ipv4->sin_port));
  }
  if (name.ss_family != AF_INET6) return "";
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(&name);
  const char* const ip = reinterpret_cast<const char*>(&ipv6->sin6_addr);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr);
  return PeerName(mapped ? Bytes(ip + 12, 4) : Bytes(ip, 16), ntohs(ipv6->sin6_port));
}

int64_t LatestGrpcServer() {
  int64_t latest = 0;
  const Struct found = ParseJson(grpc_channelz_get_servers(0));
  for (const Value& server : Field(found, "server").list_value().values()) {
    latest = std::max(latest, NumberIn(ObjectIn(server.struct_value(), "ref"), "serverId"));
  }
  return latest;
}

std::vector<int64_t> ConnectionNumbersOf(int64_t server, int64_t after) {
  constexpr int64_t kAllOfThem = 1 << 20;
  std::vector<int64_t> numbers;
  const Struct found = ParseJson(grpc_channelz_get_server_sockets(server, after + 1, kAllOfThem));
  for (const Value& reference : Field(found, "socketRef").list_value().values()) {
    numbers.push_back(NumberIn(reference.struct_value(), "socketId"));
  }
  return numbers;
}

std::string CountedPeerOf(int64_t connection) {
  const Struct found = ParseJson(grpc_channelz_get_socket(connection));
  return PeerIn(ObjectIn(found, "socket"));
}

int64_t BytesReceivedBy(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

absl::optional<CallCounts> CallsOf(int64_t connection) {
  const Struct json = ParseJson(grpc_channelz_get_socket(connection));
  if (json.fields().empty()) return absl::nullopt;
  const Struct& data = ObjectIn(ObjectIn(json, "socket"), "data");
  return CallCounts{NumberIn(data, "streamsStarted"), NumberIn(data, "streamsSucceeded"),
                    NumberIn(data, "streamsFailed"), NumberIn(data, "messagesReceived")};
}

}  // namespace sluice
