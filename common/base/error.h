// Errors with a reason. Code tells errors apart by reason, never by text.
//
// An error is an absl::Status. Its message is a sentence for people: what was found, what was
// expected, what to do next. Its reason is a payload of the status, crosses the wire as
// google.rpc.ErrorInfo, and is documented in proto/sluice/v1/parameter_server.proto.

#ifndef SLUICE_COMMON_BASE_ERROR_H_
#define SLUICE_COMMON_BASE_ERROR_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

enum class Reason {
  kNone,  // the error is not Sluice's: the transport's or the system's
  kBadToken,
  kWrongRole,
  kWrongJob,
  kVersionMismatch,
  kLayoutMismatch,
  kOptimizerMismatch,
  kNotInitialized,
  kAlreadyContributed,
  kAheadOfOthers,
  kEvicted,
  kNameTaken,
  kSequenceTooOld,
  kNotAWorker,
  kMissingHeader,
  kBadLayout,
  kBadOptimizer,
  kBadArgument,
  kBadChunk,
  kNotFinite,
  kNormTooLarge,
  kTableFull,
  kFutureStep,
  kCorruptChunk,
  kUnknownSession,
  kTooManyWorkers,
  kTooManyPulls,
  kTooManyModels,
  kModelTooLarge,
  kJournalStopped,
  kNotFound,
  kNotFirstServer,
  kStateWanted,
  kNoState,
  kGatherLost,
  kDraining,
  kDiverged,
};

// An error with `reason`, the status code that is documented for it, and `message`.
absl::Status MakeError(Reason reason, absl::string_view message);

// The same with another code, for an error that crossed the wire.
absl::Status MakeError(absl::StatusCode code, Reason reason, absl::string_view message);

// The reason of `status`; kNone if it has none.
Reason ReasonOf(const absl::Status& status);

// The bytes that an error message shows of a text from elsewhere.
inline constexpr size_t kShownBytes = 64;

// Makes a peer's text safe to show in an error message: returns its first kShownBytes, escaped.
// Escaping also keeps the message valid UTF-8 where a character was cut.
std::string Shown(absl::string_view word);

// Turns a reason into its name, for example "LAYOUT_MISMATCH", and back. Unknown names give kNone.
absl::string_view ReasonName(Reason reason);
Reason ReasonFromName(absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_ERROR_H_
