#include "worker/compression/gradient_encoder.h"

#include <utility>

#include "common/encoding/checksum.h"

namespace sluice {

GradientEncoder::GradientEncoder(const Layout& layout, GradientEncoding encoding,
                                 const std::string& worker, uint32_t servers)
    : encoding_(std::move(encoding)), stripes_(layout.size(), servers) {
  const uint64_t seed = encoding_.seed ^ Checksum(worker);
  for (uint32_t stripe = 0; stripe < servers; ++stripe) {
    encoders_.push_back(std::make_unique<StripeEncoder>(layout, stripes_, stripe, encoding_, seed));
  }
}

void GradientEncoder::Use(const Encoding& encoding, const std::vector<bool>& plain) {
  encoding_.choice.encoding = encoding;
  auto next = plain.begin();
  for (const auto& encoder : encoders_) {
    const auto count = plain.empty() ? 0 : static_cast<std::ptrdiff_t>(encoder->chunks());
    encoder->UsePlain({next, next + count});
    next += count;
  }
}

void GradientEncoder::Begin(Sequence push, Step step, double learning_rate) {
  Follow(learning_rate);
  early_.Clear();
  for (const auto& encoder : encoders_) encoder->Begin(push, step);
}

GradientEncoder::Sent GradientEncoder::NothingSent() const {
  Sent sent;
  for (const auto& encoder : encoders_) sent.emplace_back(encoder->size());
  return sent;
}

bool GradientEncoder::Send(uint64_t offset, const SharedFloats& part, OutgoingPush& push,
                           Sent& sent) {
  return push.SendEach([&](uint32_t stripe, OutgoingPush& to) {
    return encoders_[stripe]->Send(SharedStripe::Of(stripes_, stripe, offset, part), to,
                                   sent[stripe]);
  });
}

bool GradientEncoder::SendEarly(uint64_t offset, const SharedFloats& part, OutgoingPush& push,
                                Sent& sent) {
  const JoinedParts::Run run = early_.Add(offset, part);
  return Send(run.offset, run.floats, push, sent);
}

void GradientEncoder::End(bool counted) {
  early_.Clear();
  for (const auto& encoder : encoders_) encoder->End(counted);
}

void GradientEncoder::Follow(double learning_rate) {
  if (learning_rate <= 0) return;
  const double ratio = learning_rate_ / learning_rate;
  if (learning_rate_ > 0 && ratio != 1) {
    for (const auto& encoder : encoders_) encoder->ScaleLeftOver(static_cast<float>(ratio));
  }
  learning_rate_ = learning_rate;
}

}  // namespace sluice
