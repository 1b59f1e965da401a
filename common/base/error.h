// Errors that both sides tell apart by reason, never by text.
//
// An error is an absl::Status whose message is a sentence for a person: what was seen, what was
// expected, what to do next. Its reason, listed in proto/sluice/v1/parameter_server.proto, rides
// along as a payload and crosses the wire as google.rpc.ErrorInfo.

#ifndef SLUICE_COMMON_BASE_ERROR_H_
#define SLUICE_COMMON_BASE_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

enum class Reason {
  kNone,  // an error from elsewhere (the transport, the system)
  kBadToken,
  kWrongRole,
  kWrongJob,
  kLayoutMismatch,
  kOptimizerMismatch,
  kNotInitialized,
  kAlreadyContributed,
  kAheadOfOthers,
  kEvicted,
  kSequenceTooOld,
  kNotAWorker,
  kMissingHeader,
  kBadLayout,
  kBadOptimizer,
  kBadArgument,
  kBadChunk,
  kNotFinite,
  kNormTooLarge,
  kFutureStep,
  kCorruptChunk,
  kUnknownSession,
  kTooManyWorkers,
  kTooManyPulls,
  kModelTooLarge,
  kJournalStopped,
  kNotFound,
  kDraining,
};

// The error of `reason`: its documented status code, and `message`.
absl::Status MakeError(Reason reason, absl::string_view message);

// As above with the code given: for reasons that crossed the wire.
absl::Status MakeError(absl::StatusCode code, Reason reason, absl::string_view message);

// The reason `status` carries; kNone if it carries none.
Reason ReasonOf(const absl::Status& status);

// A word that anyone may have sent, for a message: its first 64 bytes, escaped. A character that is
// cut in two would be broken UTF-8, which an error cannot carry.
std::string Shown(absl::string_view word);

// "LAYOUT_MISMATCH" and back; unknown names give kNone.
absl::string_view ReasonName(Reason reason);
Reason ReasonFromName(absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_ERROR_H_
