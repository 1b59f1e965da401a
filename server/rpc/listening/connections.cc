#include "server/rpc/listening/connections.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr size_t kPortBytes = 2;

// Empty for a unix socket.
std::string IpOf(const std::string& peer) {
  return peer.substr(0, peer.size() - std::min(peer.size(), kPortBytes));
}

// Ends the connection for both sides. What has arrived is thrown away, so that gRPC does not read
// it. What the peer still sends is answered with a reset, once gRPC has closed its descriptor too.
void CloseBothWays(const FileDescriptor& handle) {
  const linger reset = {1, 0};
  setsockopt(handle.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  shutdown(handle.get(), SHUT_RDWR);
  constexpr int kMostReads = 1024;  // 64 MiB: more than a socket holds
  std::vector<char> thrown_away(64 << 10);
  for (int i = 0; i < kMostReads; ++i) {
    if (recv(handle.get(), thrown_away.data(), thrown_away.size(), MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace

std::string ShownPeer(const std::string& peer) {
  const std::string ip = IpOf(peer);
  if (ip.empty()) return "a unix socket";
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(ip.size() == 4 ? AF_INET : AF_INET6, ip.data(), text, sizeof(text));
  return text;
}

std::string Connections::WhyFull(const std::string& peer) const {
  if (connections_.size() >= limits_.in_all) {
    return absl::StrCat("there are ", connections_.size(), " connections already");
  }
  const std::string ip = IpOf(peer);
  const auto found = of_address_.find(ip);
  if (ip.empty() || found == of_address_.end() || found->second < limits_.of_one_address) return "";
  return absl::StrCat("there are ", found->second, " connections from this address already");
}

void Connections::Add(FileDescriptor handle, const std::string& peer, absl::Duration now) {
  ++of_address_[IpOf(peer)];
  by_handle_[handle.get()] = next_;
  connections_.emplace(
      next_++, Connection{std::move(handle), peer, 0, false, CallJudge(limits_.calls, now)});
}

void Connections::Remove(int handle) {
  const auto key = by_handle_.find(handle);
  if (key == by_handle_.end()) return;
  const auto found = connections_.find(key->second);
  const auto count = of_address_.find(IpOf(found->second.peer));
  if (--count->second == 0) of_address_.erase(count);
  connections_.erase(found);
  by_handle_.erase(key);
}

// A number may become visible after a higher one.
void Connections::Learn(int64_t server) {
  constexpr int64_t kLate = 100;
  const int64_t newest = seen_.empty() ? 0 : *seen_.rbegin();
  for (const int64_t number : ConnectionNumbersOf(server, std::max<int64_t>(newest - kLate, 0))) {
    if (seen_.insert(number).second) SetNumber(number, CountedPeerOf(number));
  }
  while (seen_.size() > 2 * kLate) seen_.erase(seen_.begin());
}

void Connections::SetNumber(int64_t number, const std::string& peer) {
  for (auto entry = connections_.rbegin(); entry != connections_.rend(); ++entry) {
    Connection& connection = entry->second;
    if (connection.number != 0 || connection.peer != peer) continue;
    connection.number = number;
    return;
  }
}

std::vector<std::string> Connections::Judge(Which which, absl::Duration now) {
  std::vector<std::string> closed;
  for (auto& entry : connections_) {
    Connection& connection = entry.second;
    if (connection.closed || !IsDue(connection, which, now)) continue;
    const std::string why = JudgeOne(connection, now);
    if (why.empty()) continue;
    connection.closed = true;
    CloseBothWays(connection.handle);
    closed.push_back(
        absl::StrCat("closed a connection from ", ShownPeer(connection.peer), ": ", why));
  }
  return closed;
}

bool Connections::IsDue(const Connection& connection, Which which, absl::Duration now) const {
  switch (which) {
    case Which::kAll:
      return true;
    case Which::kGrown:
      return BytesReceivedBy(connection.handle.get()) - connection.judged_bytes >
             limits_.calls.unfinished / 4;
    case Which::kWithoutCall:
      return connection.judge.awaits_first_call() && now >= connection.judge.first_call_due();
  }
  return false;
}

// gRPC itself closes a connection whose handshake is not complete in time.
std::string Connections::JudgeOne(Connection& connection, absl::Duration now) {
  auto calls = CallsOf(connection.number);
  if (calls.has_value()) {
    calls->bytes = connection.judged_bytes = BytesReceivedBy(connection.handle.get());
    return connection.judge.Judge(*calls, now);
  }
  if (now >= connection.judge.first_call_due()) connection.judge.Excuse();
  return "";
}

absl::Duration Connections::next_due() const {
  for (const auto& entry : connections_) {
    const Connection& connection = entry.second;
    if (!connection.closed && connection.judge.awaits_first_call()) {
      return connection.judge.first_call_due();
    }
  }
  return absl::InfiniteDuration();
}

}  // namespace sluice
