// A worker's connection to a server: the calls of the ParameterServer service, as values.
//
// ParameterClient and ParameterFollower use it. There are three implementations: one over gRPC
// (grpc/connection.h), one for tests that calls a shard in the same process, and one to a job with
// several servers that consists of a connection to each (striped_connection.h).

#ifndef SLUICE_WORKER_CONNECTION_SERVER_CONNECTION_H_
#define SLUICE_WORKER_CONNECTION_SERVER_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"
#include "common/tensor/stripe_span.h"
#include "worker/connection/row_gradient.h"

namespace sluice {

// The bytes that went over the link, and the time that this took. 0 bytes: unknown.
struct Transfer {
  uint64_t bytes = 0;
  absl::Duration time;
};

// A pull that was started. Destroying it cancels it.
class PendingPull {
 public:
  virtual ~PendingPull() = default;

  // Waits for the step that was asked for, and writes it to `parameters`, which have the size of
  // what the server holds. Called once. DEADLINE_EXCEEDED: the step has not been made yet, or, if
  // wrote(), it was overwritten in one of several servers' memory; pull again.
  virtual absl::StatusOr<PullHeader> Read(const StripeSpan<float>& parameters) = 0;

  // Any thread may call this. Read() then ends soon, with any error unless it was done.
  virtual void Cancel() = 0;

  // After Read(): whether it may have written to the parameters. If it also returned an error, they
  // may be a mixture of two steps.
  virtual bool wrote() const = 0;

  // After Read(): the parameters' transfer, timed from the first byte of the server's answer.
  virtual Transfer transfer() const = 0;
};

// Whether the header or the summary at the end tells the server about the gradient's batch.
enum class BatchIs { kInHeader, kInSummary };

// A push that was started. Destroying it cancels it: then none of it counts, unless the server has
// answered it. It is used by one thread at a time, which need not be its connection's.
class OutgoingPush {
 public:
  virtual ~OutgoingPush() = default;

  // Sends the elements of the gradient from `offset` on. Each element is sent once, in any order.
  // Blocks while the server accepts no more bytes. False if the push has ended: then send no more;
  // Finish() returns the reason.
  virtual bool Send(uint64_t offset, const SharedFloats& part) = 0;

  // Whether the server reads these elements where they lie, so that only their place is sent.
  virtual bool IsRead(absl::Span<const float> /*part*/) const { return false; }

  // The same as Send(), with encoded elements. With several servers only SendEach() can send them.
  bool Send(const EncodedChunk& chunk) { return SendEncoded(chunk, chunk.how.count); }
  // `taken` of the elements are the server's: all of them, unless the chunk is of_vector.
  virtual bool SendEncoded(const EncodedChunk& chunk, uint64_t taken) = 0;

  // Calls send(stripe, push) for each stripe of the vector that a server holds; one server holds
  // all of it. With several the calls are made at the same time, each from a thread of its own.
  // `push` takes elements of that stripe, whose offsets count from its begin. `send` returns false
  // if that push has ended. This returns false if the whole push has.
  virtual bool SendEach(absl::FunctionRef<bool(uint32_t stripe, OutgoingPush& push)> send) {
    return send(0, *this);
  }

  // Waits for the answer. Called once, after everything was sent or Send() returned false.
  // `summary` is used with BatchIs::kInSummary only.
  virtual absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) = 0;

  // Any thread may call this. The method that runs, and those called later, then end soon.
  virtual void Cancel() = 0;

  // Whether parts of it go through further connections. One of them may lose chunks, which the
  // server then misses.
  virtual bool has_lanes() const { return false; }

  // After Finish(): the gradient's transfer, from its first part to the answer. Unknown with
  // BatchIs::kInSummary, since parts then leave when they are computed.
  virtual Transfer transfer() const = 0;
};

// An offer of initial parameters that was started. Destroying it cancels it.
class PendingOffer {
 public:
  virtual ~PendingOffer() = default;

  // Sends `parameters`, which have the size that was announced, and waits for the answer. Called
  // once. What is being sent is a copy, a chunk at a time: nobody reads `parameters` after the
  // call.
  virtual absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& parameters) = 0;

  // Any thread may call this. Send() then ends soon, with any error unless it was done.
  virtual void Cancel() = 0;
};

// The answers to a push and to the pull that followed it.
struct PushPullAnswer {
  PushOutcome push;
  PullHeader pull;
};

// The values of a job's constants, one after the other, and their XXH3-64.
struct PulledConstants {
  std::string bytes;
  uint64_t checksum = 0;
};

// The model of a step, as another worker has offered it.
struct PulledState {
  Step step;
  bool own = false;  // the worker's own model is the job's now; then there is nothing else
  std::string bytes = {};
  uint64_t optimizer_steps = 0;  // see PullHeader
};

// What the server's optimizer remembers: each slot has a float for each element of the model.
struct PulledSlots {
  Step step;                     // after which the optimizer has these slots
  uint64_t optimizer_steps = 0;  // how many steps the optimizer has made
  std::vector<std::string> names = {};
  std::string bytes = {};  // the slots, one after the other, as float32
};

// Holds one session at a time. It is used by one thread at a time. Calls return the errors that
// proto/sluice/v1/parameter_server.proto lists, or UNAVAILABLE if the server cannot be reached.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;

  // Opens a session and ends the one before it. The session lasts until the next Join(), or until
  // this object is destroyed. Heartbeats keep its lease meanwhile.
  virtual absl::StatusOr<Welcome> Join(const JoinRequest& request) = 0;

  // Waits until the server can be reached again. UNAVAILABLE if that takes too long.
  virtual absl::Status Reconnect() = 0;

  // Blocks until something happens to the job. UNAVAILABLE if the session is over;
  // DEADLINE_EXCEEDED if nothing happened for `longest`.
  virtual absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) = 0;

  // Pauses before a refused call is repeated: blocks for `longest`. An implementation may return
  // earlier if an event may have changed the server's answer.
  virtual void AwaitRetry(absl::Duration longest) = 0;

  // Starts to offer the job its first parameters, `elements` of them, and returns at once. The
  // server accepts the first offer only. See PushHeader::attempt. DEADLINE_EXCEEDED of Send(): its
  // turn has not come; offer again.
  virtual std::unique_ptr<PendingOffer> StartOffer(SessionId session, uint32_t attempt,
                                                   uint64_t elements) = 0;

  // Makes an offer, and waits for its answer.
  absl::StatusOr<InitializeOutcome> Initialize(SessionId session,
                                               absl::Span<const float> parameters) {
    return StartOffer(session, 0, parameters.size())->Send(parameters);
  }

  // Offers the values of the layout's constants: pieces of memory, one after the other. They are
  // copied on their way. `checksum` is the XXH3-64 of all of them. Returns that of the job's:
  // another worker's, if they came first. DEADLINE_EXCEEDED: its turn has not come; offer again.
  virtual absl::StatusOr<uint64_t> OfferConstants(SessionId /*session*/, uint64_t /*checksum*/,
                                                  const std::vector<absl::Span<char>>& /*values*/) {
    return absl::UnimplementedError("this connection carries no constants");
  }

  // Returns the values of the job's constants, which have `bytes` bytes. NOT_INITIALIZED if there
  // are none yet; CORRUPT_CHUNK if they were damaged on their way.
  virtual absl::StatusOr<PulledConstants> PullConstants(SessionId /*session*/, uint64_t /*bytes*/) {
    return absl::UnimplementedError("this connection carries no constants");
  }

  // For a job whose workers step themselves: brings the model of another worker. `steps` are those
  // of its own model, if it has one. DEADLINE_EXCEEDED: it has not come yet; pull again.
  virtual absl::StatusOr<PulledState> PullState(SessionId /*session*/,
                                                absl::optional<uint64_t> /*steps*/) {
    return absl::UnimplementedError("this connection carries no model");
  }
  // Offers this worker's, after a call that got STATE_WANTED; or says why it cannot be written.
  virtual absl::Status OfferState(SessionId /*session*/,
                                  const absl::StatusOr<std::string>& /*bytes*/) {
    return absl::UnimplementedError("this connection carries no model");
  }

  // Returns the slots of the server's optimizer, of the latest step of a model of so many elements.
  // CORRUPT_CHUNK if they were damaged on their way; DEADLINE_EXCEEDED if several servers, which
  // have parts of them, make steps too fast.
  virtual absl::StatusOr<PulledSlots> PullSlots(SessionId /*session*/, uint64_t /*elements*/) {
    return absl::UnimplementedError("this connection carries no slots");
  }

  // Starts to push a gradient of `elements` elements, and of these rows, which are sent at once:
  // header.row_bytes counts them, as if they were not encoded. Blocks only while the server accepts
  // no more rows.
  virtual std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                                  BatchIs batch, const RowGradients& rows) = 0;

  // The same without rows. Returns at once.
  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch) {
    return StartPush(header, elements, batch, {});
  }

  // Sets the encoding of parameters that are pulled from now on. It is not sparse.
  virtual void UsePullEncoding(const Encoding& encoding) = 0;

  // The worker has joined at the first of several servers, and this is another one, which holds
  // `elements` of the vector. `memory` is that of the worker's gradients, or null. Holds until the
  // next call.
  virtual void BeginSession(SessionId /*session*/, uint64_t /*elements*/,
                            std::shared_ptr<const SharedMemory> /*memory*/) {}

  // Whether pulls that start from now on may read parameters in the server's memory. They may at
  // first.
  virtual void ReadWhereTheyLie(bool /*may*/) {}

  // Whether the latest session uses shared memory or a unix socket, so that nothing it sends leaves
  // this machine.
  virtual bool stays_on_machine() const = 0;

  // Whether the next push should be sent without pauses, because its transfer is measured.
  virtual bool measures_push() const { return false; }

  // Asks for a step, and returns at once.
  virtual std::unique_ptr<PendingPull> StartPull(const PullRequest& request) = 0;

  // Whether a push and a pull of a vector of `elements` elements are faster in one call. PushPull()
  // may be called only then.
  virtual bool CanPushPull(uint64_t elements) const = 0;

  // Pushes `gradient`, which is the whole vector, and then makes the pull that `request` describes,
  // with `after` = header.sequence. If it fails, `parameters` are unchanged; they may be the memory
  // of `gradient`. DEADLINE_EXCEEDED: the time was over before both were answered. After any error
  // the push may have counted; StartPush() with the same header tells.
  virtual absl::StatusOr<PushPullAnswer> PushPull(const PushHeader& header,
                                                  const SharedFloats& gradient,
                                                  const PullRequest& request,
                                                  absl::Span<float> parameters) = 0;

  // Asks for rows, and returns at once. Read() writes them one after the other, in the order of
  // `rows`: tables ascending, and their ids. `request` has no have_step. They come in the encoding
  // of parameters, unless that is one of matrices. At most kMaxPulledIds
  // ids.
  virtual std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                                    const std::vector<RowIds>& rows) = 0;

  // Tells the server what was measured, for people who look at the job while it trains.
  virtual absl::Status Report(SessionId session, const StepMeasurement& measurement) = 0;

  // Tells the server that this worker is done, or why it cannot go on.
  virtual absl::Status Leave(SessionId session, const Farewell& farewell) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_SERVER_CONNECTION_H_
