#include "common/base/error.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/types/optional.h"

namespace sluice {
namespace {

constexpr char kPayloadUrl[] = "sluice/reason";

struct ReasonEntry {
  Reason reason;
  absl::StatusCode code;
  absl::string_view name;
};

constexpr ReasonEntry kReasons[] = {
    {Reason::kNone, absl::StatusCode::kUnknown, ""},
    {Reason::kBadToken, absl::StatusCode::kUnauthenticated, "BAD_TOKEN"},
    {Reason::kWrongRole, absl::StatusCode::kPermissionDenied, "WRONG_ROLE"},
    {Reason::kWrongJob, absl::StatusCode::kFailedPrecondition, "WRONG_JOB"},
    {Reason::kVersionMismatch, absl::StatusCode::kFailedPrecondition, "VERSION_MISMATCH"},
    {Reason::kLayoutMismatch, absl::StatusCode::kFailedPrecondition, "LAYOUT_MISMATCH"},
    {Reason::kOptimizerMismatch, absl::StatusCode::kFailedPrecondition, "OPTIMIZER_MISMATCH"},
    {Reason::kNotInitialized, absl::StatusCode::kFailedPrecondition, "NOT_INITIALIZED"},
    {Reason::kAlreadyContributed, absl::StatusCode::kFailedPrecondition, "ALREADY_CONTRIBUTED"},
    {Reason::kAheadOfOthers, absl::StatusCode::kFailedPrecondition, "AHEAD_OF_OTHERS"},
    {Reason::kEvicted, absl::StatusCode::kFailedPrecondition, "EVICTED"},
    {Reason::kNameTaken, absl::StatusCode::kFailedPrecondition, "NAME_TAKEN"},
    {Reason::kSequenceTooOld, absl::StatusCode::kFailedPrecondition, "SEQUENCE_TOO_OLD"},
    {Reason::kNotAWorker, absl::StatusCode::kFailedPrecondition, "NOT_A_WORKER"},
    {Reason::kMissingHeader, absl::StatusCode::kInvalidArgument, "MISSING_HEADER"},
    {Reason::kBadLayout, absl::StatusCode::kInvalidArgument, "BAD_LAYOUT"},
    {Reason::kBadOptimizer, absl::StatusCode::kInvalidArgument, "BAD_OPTIMIZER"},
    {Reason::kBadArgument, absl::StatusCode::kInvalidArgument, "BAD_ARGUMENT"},
    {Reason::kBadChunk, absl::StatusCode::kInvalidArgument, "BAD_CHUNK"},
    {Reason::kNotFinite, absl::StatusCode::kInvalidArgument, "NOT_FINITE"},
    {Reason::kNormTooLarge, absl::StatusCode::kInvalidArgument, "NORM_TOO_LARGE"},
    {Reason::kTableFull, absl::StatusCode::kResourceExhausted, "TABLE_FULL"},
    {Reason::kFutureStep, absl::StatusCode::kInvalidArgument, "FUTURE_STEP"},
    {Reason::kCorruptChunk, absl::StatusCode::kAborted, "CORRUPT_CHUNK"},
    {Reason::kUnknownSession, absl::StatusCode::kAborted, "UNKNOWN_SESSION"},
    {Reason::kTooManyWorkers, absl::StatusCode::kResourceExhausted, "TOO_MANY_WORKERS"},
    {Reason::kTooManyPulls, absl::StatusCode::kResourceExhausted, "TOO_MANY_PULLS"},
    {Reason::kTooManyModels, absl::StatusCode::kResourceExhausted, "TOO_MANY_MODELS"},
    {Reason::kModelTooLarge, absl::StatusCode::kResourceExhausted, "MODEL_TOO_LARGE"},
    {Reason::kJournalStopped, absl::StatusCode::kResourceExhausted, "JOURNAL_STOPPED"},
    {Reason::kNotFound, absl::StatusCode::kNotFound, "NOT_FOUND"},
    {Reason::kNotFirstServer, absl::StatusCode::kFailedPrecondition, "NOT_FIRST_SERVER"},
    {Reason::kStateWanted, absl::StatusCode::kFailedPrecondition, "STATE_WANTED"},
    {Reason::kNoState, absl::StatusCode::kFailedPrecondition, "NO_STATE"},
    {Reason::kGatherLost, absl::StatusCode::kFailedPrecondition, "GATHER_LOST"},
    {Reason::kDraining, absl::StatusCode::kUnavailable, "DRAINING"},
    {Reason::kDiverged, absl::StatusCode::kFailedPrecondition, "DIVERGED"},
};

const ReasonEntry& EntryOf(Reason reason) {
  for (const ReasonEntry& entry : kReasons) {
    if (entry.reason == reason) return entry;
  }
  return kReasons[0];
}

}  // namespace

absl::Status MakeError(Reason reason, absl::string_view message) {
  return MakeError(EntryOf(reason).code, reason, message);
}

absl::Status MakeError(absl::StatusCode code, Reason reason, absl::string_view message) {
  absl::Status status(code, message);
  if (reason != Reason::kNone) status.SetPayload(kPayloadUrl, absl::Cord(ReasonName(reason)));
  return status;
}

Reason ReasonOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  return payload.has_value() ? ReasonFromName(std::string(*payload)) : Reason::kNone;
}

absl::string_view ReasonName(Reason reason) { return EntryOf(reason).name; }

Reason ReasonFromName(absl::string_view name) {
  for (const ReasonEntry& entry : kReasons) {
    if (entry.name == name) return entry.reason;
  }
  return Reason::kNone;
}

std::string Shown(absl::string_view word) { return absl::CEscape(word.substr(0, kShownBytes)); }

}  // namespace sluice
