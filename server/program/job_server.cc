#include "server/program/job_server.h"

#include <iostream>
#include <utility>

namespace sluice {

JobServer::JobServer(std::unique_ptr<Server> first)
    : first_(std::move(first)), speaker_(Speaker::kEveryServer) {}

JobServer::JobServer(std::unique_ptr<ReplicaServer> replica, Speaker speaker)
    : replica_(std::move(replica)), speaker_(speaker) {}

JobServer::~JobServer() = default;

const Address& JobServer::address() const {
  return first_ != nullptr ? first_->address() : replica_->address();
}

int JobServer::Serve() {
  if (first_ != nullptr) {
    const int code = first_->Serve();
    std::cout << first_->ClosingTable() << std::flush;
    return code;
  }
  const int code = replica_->Serve();
  return speaker_ == Speaker::kFirstServer && replica_->ended_by_first_server() ? 0 : code;
}

}  // namespace sluice
