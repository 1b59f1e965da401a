// Connects a worker to a server that runs already.

#ifndef SLUICE_TESTS_TESTING_SERVER_CONNECT_H_
#define SLUICE_TESTS_TESTING_SERVER_CONNECT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/protocol_types.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Over gRPC. Its waits for a step end after `pull_timeout`.
std::unique_ptr<ServerConnection> ConnectTo(const std::string& address,
                                            const std::string& token = "",
                                            absl::Duration pull_timeout = absl::Seconds(30));

// A whole push.
absl::StatusOr<PushOutcome> PushThrough(ServerConnection& connection, const PushHeader& header,
                                        const SharedFloats& gradient);

// Of a worker that trains tests/testing/vectors.h's ParametersOnly(elements) by plain SGD.
JoinRequest WorkerRequest(const std::string& name, uint32_t elements = 3);
JoinRequest ObserverRequest(const std::string& name, uint32_t elements = 3);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_CONNECT_H_
