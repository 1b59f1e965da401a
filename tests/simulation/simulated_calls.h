// The calls of workers that World keeps, with their parts on all servers.

#ifndef SLUICE_TESTS_SIMULATION_SIMULATED_CALLS_H_
#define SLUICE_TESTS_SIMULATION_SIMULATED_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/pending_push.h"
#include "server/replica/pull_result.h"
#include "tests/simulation/verdict.h"
#include "tests/testing/vectors.h"

namespace sluice {

// What a worker sends of a push to one server, or asks of it.
enum class CallState { kNotSent, kWaits, kArrives, kEnded };

struct PushPart {
  CallState state = CallState::kNotSent;
  bool refused = false;                  // it ended at its header, with an error
  std::unique_ptr<PendingPush> pending;  // while it arrives
  bool has_rows = false;                 // they were sent
  PushId waits = {};                     // at its header
};

struct SimulatedPush {
  PushHeader header;
  Values gradient;
  std::vector<PushPart> parts;    // by server
  bool arriving = false;          // the shard has admitted it, and has not answered
  uint64_t arrived = 0;           // elements
  Reason fault = Reason::kNone;   // of a part; the first that was found
  absl::optional<uint64_t> over;  // since that event: the shard has answered, or the call ended
  PushId id;                      // not 0 if it has waited at its header
  PushId gathers;                 // of the shard, once the shard has its part
  bool cancelled = false;         // while it waited
  // A stream waited at another server, and the shard has gone on to a later push of the session. So
  // the worker must end all streams of this one, and may repeat it.
  bool passed = false;
  int starts = 0;
  int answers = 0;
  int cancels = 0;
  bool whole = false;                // finished or refused: an answer is due
  bool past = false;                 // begun in an earlier incarnation of the server
  uint64_t original = 0;             // the push that it repeats, or itself
  absl::optional<PushVerdict> told;  // the latest; "may continue" while it arrives

  // The shard has its part, and waits for those of other servers.
  bool gathering() const { return arriving && parts[0].state == CallState::kEnded; }
};

struct PullPart {
  CallState state = CallState::kNotSent;
  PullId waits;
  absl::StatusOr<PullResult> result;
  bool judged = false;
};

struct SimulatedPull {
  PullRequest request;
  std::vector<PullPart> parts;  // by server; that of the shard waits once it has come there
  PullId id;
  int answers = 0;
  bool cancelled = false;
  bool past = false;                  // begun in an earlier incarnation of the server
  absl::StatusOr<PullResult> result;  // an error before there is an answer
};

enum class OfferFault { kNone, kNotFinite, kGap, kBroken };

// An offer of initial parameters.
struct SimulatedOffer {
  PushHeader header;
  Values parameters;
  OfferFault fault = OfferFault::kNone;
  uint32_t server = 0;              // that gets the part with the fault
  Reason expected = Reason::kNone;  // the answer to its header
  bool begun = false;               // the shard has taken it, and it has not broken off there
  PushId gathers;
  int waiting = 0;                   // streams at the doors of other servers
  std::map<uint32_t, PushId> waits;  // the ids of these streams, by server
  std::vector<uint32_t> late;        // servers to which the streams come when it is over
  bool over = false;
  int answers = 0;
  absl::StatusOr<InitializeOutcome> outcome = absl::UnknownError("not answered");
};

// The end of a push's part, and the fault in it.
struct PartEnd {
  uint32_t server = 0;
  absl::Status refused;  // found by the stream
  Reason fault = Reason::kNone;
};

// What a worker hears.
struct Heard {
  enum What { kStart, kAnswer, kCancel, kPull } what;
  uint64_t number;
  PushVerdict verdict;
  uint64_t durable = 0;    // the last step that was on all disks then
  uint64_t journaled = 0;  // the steps after it
};

// The answer that a push must get, when step `until` is on all disks; 0: in this event.
struct DueAnswer {
  PushVerdict verdict;
  uint64_t until = 0;
  bool held = false;  // the event in which it was judged is over
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_SIMULATED_CALLS_H_
