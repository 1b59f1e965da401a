#include "server/web/http/http_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/algorithm/container.h"
#include "server/web/http/http_rules.h"

namespace sluice {
namespace {

// An IPv6 address without its last 64 bits; any other as it is.
std::string NetworkOf(const std::string& peer) {
  in6_addr address = {};
  const std::string number = peer.substr(0, peer.find('%'));
  if (IsLoopbackHost(peer) || inet_pton(AF_INET6, number.c_str(), &address) != 1) return peer;
  memset(address.s6_addr + 8, 0, 8);
  char text[INET6_ADDRSTRLEN] = "";
  return inet_ntop(AF_INET6, &address, text, sizeof(text));
}

}  // namespace

bool HttpConnections::Add(int fd, const std::string& peer) {
  const absl::MutexLock lock(&mu_);
  if (open_.size() >= limits_.connections) return false;
  const std::string network = NetworkOf(peer);
  const auto of_peer = [&network](const auto& one) { return one.second.peer == network; };
  const size_t of_one = IsLoopbackHost(peer) ? limits_.connections : limits_.of_one_address;
  if (static_cast<size_t>(absl::c_count_if(open_, of_peer)) >= of_one) return false;
  const auto is_served = [](const auto& one) { return one.second.served; };
  const bool served = static_cast<size_t>(absl::c_count_if(open_, is_served)) < limits_.served;
  open_[fd] = {network, served, clock_.Now() + limits_.exchange};
  return true;
}

void HttpConnections::Remove(int fd) {
  const absl::MutexLock lock(&mu_);
  open_.erase(fd);
}

void HttpConnections::Renew(int fd) {
  const absl::MutexLock lock(&mu_);
  const auto found = open_.find(fd);
  if (found != open_.end()) found->second.until = clock_.Now() + limits_.exchange;
}

void HttpConnections::Rest(int fd) {
  const absl::MutexLock lock(&mu_);
  const auto found = open_.find(fd);
  if (found != open_.end()) found->second.until = absl::InfiniteFuture();
}

bool HttpConnections::crowded_out(int fd) const {
  const absl::MutexLock lock(&mu_);
  const auto found = open_.find(fd);
  return found != open_.end() && !found->second.served;
}

void HttpConnections::Sweep() {
  const absl::MutexLock lock(&mu_);  // so that no descriptor is closed, and given out again
  const absl::Time now = clock_.Now();
  for (auto& one : open_) {
    if (one.second.until > now) continue;
    shutdown(one.first, SHUT_RDWR);
    one.second.until = absl::InfiniteFuture();
  }
}

}  // namespace sluice
