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

// Returns a connection over gRPC. A pull waits for its step at most `pull_timeout`.
std::unique_ptr<ServerConnection> ConnectTo(const std::string& address,
                                            const std::string& token = "",
                                            absl::Duration pull_timeout = absl::Seconds(30));

// Pushes `gradient`, and returns the answer.
absl::StatusOr<PushOutcome> PushThrough(ServerConnection& connection, const PushHeader& header,
                                        const SharedFloats& gradient);

// The request of a worker or an observer of a job whose layout is ParametersOnly(elements)
// (tests/testing/vectors.h) and whose optimizer is PlainSgd().
JoinRequest WorkerRequest(const std::string& name, uint32_t elements = 3);
JoinRequest ObserverRequest(const std::string& name, uint32_t elements = 3);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_CONNECT_H_
