#include "server/replica/command_check.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

using Kind = StepOrder::Kind;

absl::Status Breaks(absl::string_view command, absl::string_view what) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the log has the command ", command, " ", what));
}

absl::Status CheckHere(bool here, absl::string_view command, absl::string_view before) {
  return here ? absl::OkStatus() : Breaks(command, absl::StrCat("before ", before));
}

}  // namespace

absl::Status CommandCheck::Take(const ReplicaCommand& command) {
  if (ended_) return MakeError(Reason::kBadArgument, "the log has a command after EndJob");
  const bool needs_model = !std::holds_alternative<OpenModel>(command) &&
                           !std::holds_alternative<BeginJournal>(command) &&
                           !std::holds_alternative<EndJob>(command);
  if (needs_model && layout_ == nullptr) {
    return MakeError(Reason::kBadArgument, "the log does not begin with OpenModel");
  }
  return std::visit([this](const auto& one) { return Check(one); }, command);
}

void CommandCheck::Note(const ReplicaReport& report) {
  const auto* const loaded = std::get_if<LoadedReport>(&report);
  if (loaded != nullptr && loaded->failed.ok()) loading_ = false;
  const auto* const have = std::get_if<HaveReport>(&report);
  if (have == nullptr) return;
  const auto push = pushes_.find(have->push);
  if (push != pushes_.end()) push->second.is_here = have->refused.ok();
}

absl::Status CommandCheck::Check(const OpenModel& command) {
  if (layout_ != nullptr) return Breaks("OpenModel", "twice");
  layout_ = command.layout;
  optimizer_ = command.optimizer;
  return absl::OkStatus();
}

absl::Status CommandCheck::Check(const LoadCheckpoint& command) {
  if (has_parameters_) return Breaks("LoadCheckpoint", "after there are parameters");
  for (const auto& [incarnation, step] : command.begins) {
    if (incarnation > command.source.incarnation && step >= command.source.step) continue;
    return Breaks("LoadCheckpoint", absl::StrCat("with incarnation ", incarnation.value(),
                                                 ", which began before the checkpoint"));
  }
  loaded_ = true;
  loading_ = true;
  has_parameters_ = true;
  return sessions_.empty() ? absl::OkStatus() : Breaks("LoadCheckpoint", "after OpenSession");
}

absl::Status CommandCheck::Check(const ReplayStep& /*command*/) {
  if (!loaded_) return Breaks("ReplayStep", "without LoadCheckpoint");
  if (!sessions_.empty()) return Breaks("ReplayStep", "after OpenSession");
  if (journals_) return Breaks("ReplayStep", "after BeginJournal");
  if (added_ > 0 || latest_.has_value()) return Breaks("ReplayStep", "before PublishStep");
  added_ = 1;  // the sum is that of a journaled step
  last_ = true;
  return absl::OkStatus();
}

absl::Status CommandCheck::Check(const BeginJournal& /*command*/) {
  if (journals_) return Breaks("BeginJournal", "twice");
  if (added_ > 0 || latest_.has_value()) return Breaks("BeginJournal", "before PublishStep");
  journals_ = true;
  return absl::OkStatus();
}

absl::Status CommandCheck::Check(const EndJob& /*command*/) {
  ended_ = true;
  return absl::OkStatus();
}

// ---- Sessions, pushes and pulls ----

absl::Status CommandCheck::CheckOpen(SessionId session) const {
  if (sessions_.count(session) > 0) return absl::OkStatus();
  return MakeError(Reason::kBadArgument, absl::StrCat("the log has a command on session ",
                                                      session.value(), ", which is not open"));
}

absl::Status CommandCheck::Check(const OpenSession& command) {
  if (sessions_.insert(command.session).second) return absl::OkStatus();
  return Breaks("OpenSession", absl::StrCat("twice for session ", command.session.value()));
}

absl::Status CommandCheck::Check(const EndSession& command) {
  const absl::Status open = CheckOpen(command.session);
  if (!open.ok()) return open;
  sessions_.erase(command.session);
  for (auto it = pushes_.begin(); it != pushes_.end();) {
    const bool keeps = std::count(command.keep.begin(), command.keep.end(), it->first) > 0;
    const bool ends = it->second.session == command.session && !keeps;
    it = ends ? pushes_.erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

absl::Status CommandCheck::Check(const AdmitPush& command) {
  const absl::Status open = CheckOpen(command.name.session);
  if (!open.ok()) return open;
  if (command.push == PushId()) return Breaks("AdmitPush", "with the push 0");
  if (pushes_.emplace(command.push, Push{command.name.session}).second) return absl::OkStatus();
  return Breaks("AdmitPush", absl::StrCat("twice for push ", command.push.value()));
}

absl::Status CommandCheck::Check(const DropPush& command) {
  pushes_.erase(command.push);
  return absl::OkStatus();
}

absl::Status CommandCheck::Check(const DropPull& command) const {
  return CheckOpen(command.pull.session);
}

absl::Status CommandCheck::Check(const ReleasePull& command) const {
  const absl::Status open = CheckOpen(command.pull.session);
  if (!open.ok()) return open;
  return CheckHere(has_parameters_, "ReleasePull", "there are parameters");
}

// The push is used up.
absl::Status CommandCheck::TakePush(PushId id) {
  const auto push = pushes_.find(id);
  const bool here = push != pushes_.end() && push->second.is_here;
  if (here) pushes_.erase(push);
  if (here) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the log takes push ", id.value(), ", which is not here"));
}

absl::Status CommandCheck::Check(const TakeParameters& command) {
  if (has_parameters_) return Breaks("TakeParameters", "twice");
  has_parameters_ = true;
  return TakePush(command.push);
}

// ---- Steps ----

absl::Status CommandCheck::Check(const AddPush& command) {
  if (!has_parameters_) return Breaks("AddPush", "before there are parameters");
  if (last_ || latest_.has_value()) return Breaks("AddPush", "after the last one of the step");
  ++added_;
  last_ = command.last;
  return TakePush(command.push);
}

absl::Status CommandCheck::CheckPrepare(const StepOrder& order) const {
  if (added_ == 0) return Breaks("PREPARE", "without a gradient");
  const size_t rates = RatesOf(optimizer_);
  if (order.optimizer.learning_rates.size() == rates) {
    return CheckChanged(optimizer_, order.optimizer.changed);
  }
  return Breaks("PREPARE", absl::StrCat("with ", order.optimizer.learning_rates.size(),
                                        " learning rates, expected ", rates));
}

absl::Status CommandCheck::Check(const StepOrder& order) {
  if (!has_parameters_) return Breaks("StepOrder", "before there are parameters");
  if (order.kind == Kind::kSample) return CheckHere(!latest_.has_value(), "SAMPLE", "PublishStep");
  if (order.kind == Kind::kDigest) return CheckHere(!latest_.has_value(), "DIGEST", "PublishStep");
  const absl::optional<Kind> before = latest_;
  latest_ = order.kind;
  if (before == Kind::kMake || before == Kind::kCopy) return Breaks("StepOrder", "after MAKE");
  switch (order.kind) {
    case Kind::kMeasureSum:
      if (added_ == 0) return Breaks("MEASURE_SUM", "without a gradient");
      return CheckHere(!before.has_value(), "MEASURE_SUM", "PublishStep");
    case Kind::kPrepare:
      if (before.has_value() && before != Kind::kMeasureSum) return Breaks("PREPARE", "twice");
      return CheckPrepare(order);
    case Kind::kScale:
      if (order.trust.rates.size() != layout_->ranges().size()) {
        return Breaks("SCALE", absl::StrCat("with ", order.trust.rates.size(), " rates, expected ",
                                            layout_->ranges().size()));
      }
      return CheckHere(before == Kind::kPrepare, "SCALE", "PREPARE");
    case Kind::kMake:
      return CheckHere(before == Kind::kPrepare || before == Kind::kScale, "MAKE", "PREPARE");
    default:
      return absl::OkStatus();
  }
}

absl::Status CommandCheck::Check(const PublishStep& /*command*/) {
  if (latest_ != Kind::kMake && latest_ != Kind::kCopy) return Breaks("PublishStep", "before MAKE");
  latest_.reset();
  added_ = 0;
  last_ = false;
  return absl::OkStatus();
}

absl::Status CommandCheck::Check(const TakeCheckpoint& /*command*/) const {
  return CheckHere(has_parameters_, "TakeCheckpoint", "there are parameters");
}

absl::Status CommandCheck::Check(const KeepCheckpoints& /*command*/) const {
  return absl::OkStatus();
}

// ---- Tensors ----

absl::Status CommandCheck::Check(const SummarizeTensor& command) {
  if (!has_parameters_) return Breaks("SummarizeTensor", "before there are parameters");
  if (loading_) return Breaks("SummarizeTensor", "before the checkpoint is loaded");
  if (command.number <= summaries_) {
    return Breaks("SummarizeTensor", absl::StrCat("with the number ", command.number,
                                                  ", expected more than ", summaries_));
  }
  summaries_ = command.number;
  return CheckFits(command.query);
}

absl::Status CommandCheck::CheckFits(const TensorQuery& query) const {
  const size_t tensors = layout_->ranges().size();
  if (query.tensor >= tensors) {
    return Breaks("SummarizeTensor", absl::StrCat("of the tensor with the index ", query.tensor,
                                                  ", and the model has ", tensors, " tensors"));
  }
  const uint64_t length = layout_->ranges()[query.tensor].length;
  if (query.count <= TensorQuery::kMostValues && query.first <= length &&
      query.count <= length - query.first) {
    return absl::OkStatus();
  }
  return Breaks("SummarizeTensor", absl::StrCat("with ", query.count, " values from ", query.first,
                                                " on, expected at most ", TensorQuery::kMostValues,
                                                " values of a tensor of ", length));
}

}  // namespace sluice
