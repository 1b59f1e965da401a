#include "server/web/http/http_connections.h"

#include <sys/socket.h>

#include "absl/algorithm/container.h"
#include "server/web/http/http_rules.h"

namespace sluice {

bool HttpConnections::Add(int fd, const std::string& peer) {
  const absl::MutexLock lock(&mu_);
  if (open_.size() >= limits_.connections) return false;
  const auto of_peer = [&peer](const auto& one) { return one.second.peer == peer; };
  const size_t of_one = IsLoopbackHost(peer) ? limits_.connections : limits_.of_one_address;
  if (static_cast<size_t>(absl::c_count_if(open_, of_peer)) >= of_one) return false;
  open_[fd] = {peer, clock_.Now() + limits_.exchange};
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

bool HttpConnections::crowded() const {
  const absl::MutexLock lock(&mu_);
  return open_.size() > limits_.served;
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
