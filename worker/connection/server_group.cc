#include "worker/connection/server_group.h"

#include <algorithm>

#include "worker/connection/striped_calls.h"

namespace sluice {

void ServerGroup::Take(const std::vector<std::string>& addresses) {
  const bool several = addresses.size() > 1;
  servers_.resize(several ? addresses.size() : 0);
  addresses_.resize(servers_.size());
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (addresses_[i] != addresses[i]) servers_[i] = nullptr;
  }
  if (several) addresses_ = addresses;
}

absl::Status ServerGroup::DialMissing() {
  for (uint32_t i = 1; i < servers_.size(); ++i) {
    if (servers_[i] != nullptr) continue;
    auto dialed = dial_(addresses_[i]);
    if (!dialed.ok()) return NamedError(i, addresses_, dialed.status());
    servers_[i] = *std::move(dialed);
    if (pull_encoding_.has_value()) servers_[i]->UsePullEncoding(*pull_encoding_);
  }
  return absl::OkStatus();
}

absl::Status ServerGroup::CheckConnected() const {
  for (uint32_t i = 1; i < servers_.size(); ++i) {
    if (servers_[i] != nullptr) continue;
    return NamedError(i, addresses_, absl::UnavailableError("it is not connected"));
  }
  return absl::OkStatus();
}

void ServerGroup::CloseOthers() {
  for (auto& server : servers_) server = nullptr;
}

void ServerGroup::UsePullEncoding(const Encoding& encoding) {
  pull_encoding_ = encoding;
  first_->UsePullEncoding(encoding);
  for (const auto& server : servers_) {
    if (server != nullptr) server->UsePullEncoding(encoding);
  }
}

bool ServerGroup::stay_on_machine() const {
  return first_->stays_on_machine() &&
         std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
           return server == nullptr || server->stays_on_machine();
         });
}

}  // namespace sluice
