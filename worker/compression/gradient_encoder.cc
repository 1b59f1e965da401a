#include "worker/compression/gradient_encoder.h"

#include <algorithm>
#include <utility>

#include "common/encoding/checksum.h"

namespace sluice {
namespace {

// Of the largest learning rate: the smallest one that residuals are scaled for. Steps at such a
// rate hardly change the parameters, and what is scaled without a bound becomes infinite.
constexpr double kLeastRate = 1e-6;

}  // namespace

GradientEncoder::GradientEncoder(const Layout& layout, GradientEncoding encoding,
                                 const std::string& worker, uint32_t servers)
    : encoding_(std::move(encoding)), stripes_(layout.size(), servers) {
  const uint64_t seed = encoding_.seed ^ Checksum(worker);
  for (uint32_t stripe = 0; stripe < servers; ++stripe) {
    encoders_.push_back(std::make_unique<StripeEncoder>(layout, stripes_, stripe, encoding_, seed));
  }
  std::vector<PlannedChunk> whole = PlanWhole(layout, encoding_.choice);
  if (servers == 1 || whole.empty()) return;
  whole_ = std::make_unique<ChunkEncoder>(std::move(whole), Stripe{Stripes(layout.size(), 1)},
                                          encoding_, seed);
}

template <typename Act>
void GradientEncoder::ForEachEncoder(const Act& act) {
  for (const auto& encoder : encoders_) act(encoder->encoder());
  if (whole_ != nullptr) act(*whole_);
}

void GradientEncoder::Use(const Encoding& encoding, const std::vector<bool>& plain) {
  encoding_.choice.encoding = encoding;
  auto next = plain.begin();
  for (const auto& encoder : encoders_) {
    ChunkEncoder& chunks = encoder->encoder();
    const auto count = plain.empty() ? 0 : static_cast<std::ptrdiff_t>(chunks.chunks().size());
    chunks.UsePlain({next, next + count});
    next += count;
  }
}

void GradientEncoder::Begin(Sequence push, Step step, double learning_rate) {
  Follow(learning_rate);
  early_.Clear();
  ForEachEncoder([&](ChunkEncoder& encoder) { encoder.Begin(push, step); });
}

GradientEncoder::Sent GradientEncoder::NothingSent() const {
  Sent sent;
  for (const auto& encoder : encoders_) sent.emplace_back(encoder->size());
  return sent;
}

bool GradientEncoder::Send(uint64_t offset, const SharedFloats& part, OutgoingPush& push,
                           Sent& sent) {
  const Chunks whole = EncodeWhole(offset, part.values);
  return push.SendEach([&](uint32_t stripe, OutgoingPush& to) {
    const bool open =
        encoders_[stripe]->Send(SharedStripe::Of(stripes_, stripe, offset, part), to, sent[stripe]);
    return open && SendWhole(whole, stripe, to, sent[stripe]);
  });
}

GradientEncoder::Chunks GradientEncoder::EncodeWhole(uint64_t offset,
                                                     absl::Span<const float> part) {
  Chunks encoded;
  if (whole_ == nullptr) return encoded;
  for (size_t i = 0; i < whole_->chunks().size(); ++i) {
    const PlannedChunk& chunk = whole_->chunks()[i];
    if (chunk.begin < offset || chunk.end > offset + part.size()) continue;
    encoded.push_back(
        &whole_->Encode(i, part.subspan(chunk.begin - offset, chunk.end - chunk.begin)));
  }
  return encoded;
}

bool GradientEncoder::SendWhole(const Chunks& chunks, uint32_t stripe, OutgoingPush& push,
                                Coverage& sent) const {
  for (const EncodedChunk* const encoded : chunks) {
    const uint64_t begin = stripes_.Before(stripe, encoded->offset);
    const uint64_t end = stripes_.Before(stripe, encoded->offset + encoded->how.count);
    const absl::optional<Coverage::Gap> gap = sent.FirstGap(begin);
    if (begin == end || !gap.has_value() || gap->begin >= end) continue;
    EncodedChunk chunk = *encoded;
    chunk.of_vector = true;
    if (!push.SendEncoded(chunk, end - begin) || !sent.Add(begin, end - begin).ok()) return false;
  }
  return true;
}

bool GradientEncoder::SendEarly(uint64_t offset, const SharedFloats& part, OutgoingPush& push,
                                Sent& sent) {
  const JoinedParts::Run run = early_.Add(offset, part);
  return Send(run.offset, run.floats, push, sent);
}

void GradientEncoder::End(bool counted) {
  early_.Clear();
  ForEachEncoder([&](ChunkEncoder& encoder) { encoder.End(counted); });
}

void GradientEncoder::Follow(double learning_rate) {
  if (learning_rate <= 0) return;
  largest_rate_ = std::max(largest_rate_, learning_rate);
  const double rate = std::max(learning_rate, largest_rate_ * kLeastRate);
  if (learning_rate_ > 0 && rate != learning_rate_) {
    const auto factor = static_cast<float>(learning_rate_ / rate);
    ForEachEncoder([&](ChunkEncoder& encoder) { encoder.ScaleLeftOver(factor); });
  }
  learning_rate_ = rate;
}

}  // namespace sluice
