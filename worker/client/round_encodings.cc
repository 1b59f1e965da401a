#include "worker/client/round_encodings.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status CheckFitsStripes(const EncodingChoice& choice, uint32_t servers) {
  const Encoding* const refused = choice.matrix_candidate();
  if (servers == 1 || refused == nullptr) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("--push-encoding=", EncodingChoiceName(choice), " with ", servers,
                                " servers: auto cannot choose ", EncodingName(*refused),
                                " there, since each server would get every matrix whole; use it "
                                "alone, or leave it out of auto"));
}

// Whether each value is sent, nearly as it is.
bool SuitsRows(const Encoding& encoding) {
  switch (encoding.transform) {
    case ValueTransform::kFloat32:
    case ValueTransform::kFloat16:
    case ValueTransform::kBfloat16:
    case ValueTransform::kInt8:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status RoundEncodings::Prepare(JoinRequest& request) {
  if (push_.choice.momentum()) {
    const auto momentum = TakeMomentum(request.layout, &request.optimizer);
    if (!momentum.ok()) return momentum.status();
    push_.momentum = *momentum;
  } else if (push_.error_feedback) {
    const std::string advice = AdviceOnMomentum(push_.choice, request.optimizer);
    if (!advice.empty()) LOG(INFO) << Shown(request.worker) << ": " << advice;
  }
  return absl::OkStatus();
}

absl::Status RoundEncodings::Adapt(const JoinRequest& request,
                                   ChangedOptions::Groups* changed) const {
  if (!push_.choice.momentum()) return absl::OkStatus();
  if (changed->count(0) > 0 && !request.layout.tables().empty()) {
    return MakeError(Reason::kBadOptimizer,
                     "the options of the model's optimizer have changed, and an encoding with "
                     ":momentum keeps the tables at the first ones; leave :momentum out, or give "
                     "the parameters a group of their own");
  }
  for (auto& [group, options] : *changed) {
    const absl::Status taken = TakeMomentum(push_.momentum, &options);
    if (!taken.ok()) return taken;
  }
  return absl::OkStatus();
}

// The number of servers that hold the vector decides how it is cut, and only a Welcome tells it.
absl::Status RoundEncodings::Fit(const JoinRequest& request, const Welcome& welcome) {
  const auto servers = std::max(uint32_t{1}, static_cast<uint32_t>(welcome.servers.size()));
  if (servers == servers_) return absl::OkStatus();
  const absl::Status fits = CheckFitsStripes(push_.choice, servers);
  if (!fits.ok()) return fits;
  if (servers_ > 0 && encoder_ != nullptr) {
    LOG(WARNING) << Shown(request.worker) << " drops what encodings have left over: the job has "
                 << servers << " servers now, and had " << servers_;
  }
  servers_ = servers;
  if (request.layout.size() == 0) return absl::OkStatus();  // rows need no encoder
  if (!push_.choice.plain()) {
    encoder_ = std::make_unique<GradientEncoder>(request.layout, push_, request.worker, servers);
    encoder_->Begin(begun_, held_.step, held_.learning_rate);  // a push may be repeated
  }
  if (push_.choice.automatic() || pull_.automatic()) {
    auto_ = std::make_unique<AutoEncodings>(request.layout, push_, pull_, request.worker, servers,
                                            clock_);
  }
  return absl::OkStatus();
}

absl::optional<EncodingReport> RoundEncodings::Begin(Sequence push, const PullHeader& held,
                                                     ServerConnection& connection) {
  begun_ = push;
  held_ = held;
  if (auto_ != nullptr) auto_->BeginRound(encoder_.get(), connection);
  if (encoder_ != nullptr) encoder_->Begin(push, held.step, held.learning_rate);
  return auto_ == nullptr ? absl::nullopt : auto_->TakeReport();
}

GradientEncoder::Sent RoundEncodings::NothingSent(uint64_t elements) const {
  return encoder_ == nullptr ? GradientEncoder::Sent{Coverage(elements)} : encoder_->NothingSent();
}

bool RoundEncodings::SendEarly(uint64_t offset, const SharedFloats& part, OutgoingPush& push,
                               GradientEncoder::Sent& sent) {
  if (encoder_ != nullptr) return encoder_->SendEarly(offset, part, push, sent);
  return push.Send(offset, part) && sent[0].Add(offset, part.values.size()).ok();
}

bool RoundEncodings::SendRest(const SharedFloats& gradient, OutgoingPush& push,
                              GradientEncoder::Sent& sent) {
  if (encoder_ != nullptr) return encoder_->Send(0, gradient, push, sent);
  while (const auto gap = sent[0].FirstGap()) {
    const uint64_t size = gap->end - gap->begin;
    const bool open = push.Send(gap->begin, gradient.Part(gap->begin, size));
    if (!open || !sent[0].Add(gap->begin, size).ok()) return false;
  }
  return true;
}

void RoundEncodings::Choose(RowGradients& rows) const {
  if (push_.choice.automatic() || !SuitsRows(push_.choice.encoding)) return;
  for (RowGradient& gradient : rows) gradient.encoding = push_.choice.encoding;
}

}  // namespace sluice
