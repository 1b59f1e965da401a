// What a worker asks of a server: the calls of the ParameterServer service, as values.
//
// Two implementations: grpc_connection.h, and the tests' twin that calls a shard in the same
// process.

#ifndef SLUICE_WORKER_CONNECTION_SERVER_CONNECTION_H_
#define SLUICE_WORKER_CONNECTION_SERVER_CONNECTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/shared_floats.h"

namespace sluice {

// What went over the link, and in how long. No bytes: unknown.
struct Transfer {
  uint64_t bytes = 0;
  absl::Duration time;
};

// A pull under way. Destroying it gives it up.
class PendingPull {
 public:
  virtual ~PendingPull() = default;

  // Waits for the step asked for and writes it to `parameters`, which have the layout's size; once.
  // After an error they may be a mixture. DEADLINE_EXCEEDED: the step has not come yet; pull again.
  virtual absl::StatusOr<PullHeader> Read(absl::Span<float> parameters) = 0;

  // After Read(): of the parameters, from when the server had begun to answer.
  virtual Transfer transfer() const = 0;
};

// When the server is told of the batch that a gradient was computed on.
enum class BatchIs { kInHeader, kInSummary };

// A push under way. Destroying it gives it up: none of it counts, unless it was answered. To be
// used by one thread at a time, which need not be its connection's.
class OutgoingPush {
 public:
  virtual ~OutgoingPush() = default;

  // Sends a part of the gradient, which begins at `offset`: each element once, in any order. Blocks
  // for as long as the server takes no more. False if the push has ended already, which Finish()
  // explains; send no more then.
  virtual bool Send(uint64_t offset, const SharedFloats& part) = 0;

  // The same with encoded elements.
  virtual bool Send(const EncodedChunk& chunk) = 0;

  // All of it was sent, or it has ended: waits for the answer; once. `summary` is for BatchIs::
  // kInSummary.
  virtual absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) = 0;

  // After Finish(): of the gradient, from its first part to the answer. Unknown with BatchIs::
  // kInSummary, whose parts come when they are computed.
  virtual Transfer transfer() const = 0;
};

// One session's way to the server. To be used by one thread at a time. Errors are those of
// proto/sluice/v1/parameter_server.proto; UNAVAILABLE if the server cannot be reached.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;

  // Opens a session, which lasts until the next Join or the end of this object, and says that it
  // lives as often as the server wants to hear it.
  virtual absl::StatusOr<Welcome> Join(const JoinRequest& request) = 0;

  // Waits until the server can be reached again. UNAVAILABLE if that takes too long.
  virtual absl::Status Reconnect() = 0;

  // Blocks until something happens to the job. UNAVAILABLE if the session is over.
  virtual absl::StatusOr<JobEvent> NextEvent() = 0;

  // The pause before a refused call is repeated: blocks for `longest`, or until an event arrives or
  // the session ends, since either may change what the server answers.
  virtual void AwaitRetry(absl::Duration longest) = 0;

  virtual absl::StatusOr<InitializeOutcome> Initialize(SessionId session,
                                                       const SharedFloats& parameters) = 0;
  // Begins to push a gradient of `elements`; returns at once.
  virtual std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                                  BatchIs batch) = 0;

  // How parameters are written that are pulled from now on; not sparse.
  virtual void UsePullEncoding(const Encoding& encoding) = 0;

  // Whether what the latest session sends stays on this machine: through shared memory or a unix
  // socket.
  virtual bool stays_on_machine() const = 0;

  // Whether the next push should be sent at once, since it is measured how long that takes.
  virtual bool measures_push() const { return false; }

  // Asks for a step; returns at once.
  virtual std::unique_ptr<PendingPull> StartPull(const PullRequest& request) = 0;

  virtual absl::Status Leave(SessionId session, const Results& results) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_SERVER_CONNECTION_H_
