// Messages without tensors, from any peer: what is taken of one is said, and taken, again as the
// same; and what a server takes of a job's terms can be kept on disk.
#include "common/wire/messages.h"

#include <glog/logging.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/protocol/optimizer_config.h"
#include "common/wire/encoding.h"
#include "common/wire/status.h"
#include "server/durable/format/saved_state.h"
#include "server/state/shard_checkpoint.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// What a message says; of any kind, in a form that may have failed.
absl::StatusOr<PullRequest> Taken(const v1::PullParamsRequest& message) {
  return FromProto(message);
}
absl::StatusOr<PullHeader> Taken(const v1::PullHeader& message) { return FromProto(message); }
absl::StatusOr<Encoding> Taken(const v1::Encoding& message) {
  return FromProto(message, BuiltinTransforms());
}
template <typename Message>
auto Taken(const Message& message) {
  return FromProto(message);
}

// The value that `bytes` are a message of, if they are.
template <typename Message>
auto Take(absl::string_view bytes) {
  using Value = std::decay_t<decltype(Taken(Message()).value())>;
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::optional<Value>();
  }
  auto value = Taken(message);
  if (!value.ok()) {
    CheckRefusal(value.status(), {Reason::kBadArgument, Reason::kBadLayout, Reason::kBadOptimizer});
    return absl::optional<Value>();
  }
  const Message said = ToProto(*value);
  const auto again = Taken(said);
  CHECK(again.ok()) << again.status() << ": " << said.ShortDebugString();
  CHECK(ToProto(*again).SerializeAsString() == said.SerializeAsString()) << said.ShortDebugString();
  return absl::make_optional(*std::move(value));
}

// A server goes on from what it has kept.
void CheckKept(const ShardCheckpoint& checkpoint) {
  const std::string state = EncodeSavedState(checkpoint);
  // protobuf (3.21.12) reads a -0 in JSON as 0.
  if (absl::StrContains(state, ":-0,") || absl::StrContains(state, ":-0}")) return;
  const auto read = DecodeSavedState(state);
  CHECK(read.ok()) << read.status() << ": " << state;
  CHECK(EncodeSavedState(*read) == state) << state;
}

ShardCheckpoint CheckpointOf(Layout layout, const OptimizerConfig& optimizer) {
  ShardCheckpoint checkpoint;
  checkpoint.layout = std::make_shared<const Layout>(std::move(layout));
  checkpoint.optimizer = optimizer;
  return checkpoint;
}

void CheckUnlessOk(const absl::Status& status, Reason reason) {
  if (!status.ok()) CheckRefusal(status, {reason});
}

// With something in each field that is kept.
SessionRecord SomeRecordOf(const JoinRequest& request) {
  SessionRecord record;
  record.worker = request.worker;
  record.process_nonce = request.process_nonce;
  record.index = 1;
  record.banned = true;
  record.last_sequence = Sequence(3);
  record.answers[Sequence(3)].outcome.staleness = 2;
  record.clock = 4;
  record.accepted = 5;
  record.stale = 6;
  record.skipped = 7;
  return record;
}

// As a job's first worker, and as one of another model's job.
void TryJoin(absl::string_view bytes) {
  const auto request = Take<v1::JoinRequest>(bytes);
  if (!request.has_value()) return;
  CheckUnlessOk(CheckSameLayout(ParametersOnly(1), request->layout), Reason::kLayoutMismatch);
  const OptimizerConfig adam = {AdamOptions(), {{{"w"}, AdamOptions()}}};
  CheckUnlessOk(CheckSameOptimizer(adam, request->optimizer), Reason::kOptimizerMismatch);
  const absl::Status fits = CheckFits(request->optimizer, request->layout);
  CheckUnlessOk(fits, Reason::kBadOptimizer);
  if (!fits.ok()) return;
  ShardCheckpoint checkpoint = CheckpointOf(request->layout, request->optimizer);
  checkpoint.workers.push_back(SomeRecordOf(*request));
  CheckKept(checkpoint);
}

void TryConsistency(absl::string_view bytes) {
  const auto consistency = Take<v1::Consistency>(bytes);
  if (!consistency.has_value()) return;
  ShardCheckpoint checkpoint = CheckpointOf(ParametersOnly(1), {SgdOptions()});
  checkpoint.consistency = *consistency;
  CheckKept(checkpoint);
}

// Nothing but a user's own transform goes by a name.
void TryEncoding(absl::string_view bytes) {
  const auto encoding = Take<v1::Encoding>(bytes);
  if (!encoding.has_value()) return;
  v1::Encoding message;
  CHECK(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  CHECK(static_cast<int>(encoding->transform) == message.transform());
}

// What the other side says of an error.
void TryStatus(absl::string_view bytes) {
  const grpc::Status from(grpc::StatusCode::INVALID_ARGUMENT, "why", std::string(bytes));
  const absl::Status status = FromGrpcStatus(from);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument && status.message() == "why");
  CHECK(FromGrpcStatus(ToGrpcStatus(status)) == status);
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t which = input.Byte();
  const absl::string_view message = input.Rest();
  switch (which % 13) {
    case 0:
      return TryJoin(message);
    case 1:
      return TryConsistency(message);
    case 2:
      return TryStatus(message);
    case 3:
      return static_cast<void>(Take<v1::Welcome>(message));
    case 4:
      return static_cast<void>(Take<v1::JoinEvent>(message));
    case 5:
      return static_cast<void>(Take<v1::PushHeader>(message));
    case 6:
      return static_cast<void>(Take<v1::PushSummary>(message));
    case 7:
      return static_cast<void>(Take<v1::PushGradientsResponse>(message));
    case 8:
      return static_cast<void>(Take<v1::PullParamsRequest>(message));
    case 9:
      return static_cast<void>(Take<v1::PullHeader>(message));
    case 10:
      return TryEncoding(message);
    case 11:
      return static_cast<void>(Take<v1::OptimizerConfig>(message));
    default:
      return static_cast<void>(Take<v1::Layout>(message));
  }
}

}  // namespace sluice
