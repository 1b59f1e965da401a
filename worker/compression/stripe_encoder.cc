#include "worker/compression/stripe_encoder.h"

#include <algorithm>
#include <utility>

#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/error_feedback.h"

namespace sluice {
namespace {

constexpr char kPushRow[] = "push";  // row of the trace, as in worker/connection/grpc/push.cc

bool AnyLossy(const std::vector<Encoding>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Encoding& candidate) { return candidate.lossy(); });
}

}  // namespace

StripeEncoder::StripeEncoder(const Layout& layout, const Stripes& stripes, uint32_t stripe,
                             const GradientEncoding& encoding, uint64_t seed)
    : encoding_(encoding),
      stripes_(stripes),
      stripe_(stripe),
      seed_(seed),
      chunks_(PlanChunks(stripes.LayoutOf(stripe, layout), encoding.choice)),
      memories_(chunks_.size()),
      encoded_(chunks_.size()),
      momentum_correction_(encoding.choice.momentum() ? size() : 0, encoding.momentum) {
  const bool keeps = std::any_of(chunks_.begin(), chunks_.end(), [this](const PlannedChunk& chunk) {
    return KeepsLeftOver(chunk);
  });
  if (!encoding_.error_feedback || !keeps) return;
  left_over_.assign(size(), 0.0f);
  next_left_over_ = left_over_;
}

void StripeEncoder::Begin(Sequence push, Step step) {
  push_ = push;
  step_ = step;
  std::fill(encoded_.begin(), encoded_.end(), absl::nullopt);
}

void StripeEncoder::ScaleLeftOver(float factor) {
  for (float& value : left_over_) value *= factor;
}

bool StripeEncoder::Send(const SharedStripe& part, OutgoingPush& push, Coverage& sent) {
  const uint64_t end = part.span.end();
  for (uint64_t at = part.span.begin(); at < end;) {
    const absl::optional<Coverage::Gap> gap = sent.FirstGap(at);
    if (!gap.has_value() || gap->begin >= end) return true;
    at = std::min(end, gap->end);
    if (!SendRange(part, gap->begin, at, push, sent)) return false;
  }
  return true;
}

bool StripeEncoder::SendRange(const SharedStripe& part, uint64_t begin, uint64_t end,
                              OutgoingPush& push, Coverage& sent) {
  const auto first =
      std::partition_point(chunks_.begin(), chunks_.end(),
                           [&](const PlannedChunk& chunk) { return chunk.end <= begin; });
  for (auto chunk = first; chunk != chunks_.end() && chunk->begin < end; ++chunk) {
    const auto index = static_cast<size_t>(chunk - chunks_.begin());
    const uint64_t from = std::max(begin, chunk->begin);
    uint64_t to = std::min(end, chunk->end);
    const bool plain = EncodingOf(index) == nullptr;
    for (size_t next = index + 1; plain && to < end && EncodingOf(next) == nullptr; ++next) {
      to = std::min(end, (++chunk)->end);
    }
    bool open = true;
    if (plain) {
      open = SendStripe(part, from, to, push);
    } else if (from == chunk->begin && to == chunk->end) {
      if (!encoded_[index].has_value()) encoded_[index] = Encode(index, part.Part(from, to).values);
      open = push.Send(*encoded_[index]);
    } else {
      continue;  // a later call has the whole chunk
    }
    if (!open || !sent.Add(from, to - from).ok()) return false;
  }
  return true;
}

bool StripeEncoder::KeepsLeftOver(const PlannedChunk& chunk) const {
  if (chunk.awaits_choice) return AnyLossy(encoding_.choice.candidates);
  return chunk.encoding != nullptr && chunk.encoding->lossy();
}

const Encoding* StripeEncoder::EncodingOf(size_t index) const {
  static const auto* const plain = new Encoding();
  const PlannedChunk& chunk = chunks_[index];
  if (!chunk.awaits_choice) return chunk.encoding;
  const bool worth_it = index >= plain_.size() || !plain_[index];
  if (worth_it && !chunk.encoding->plain()) return chunk.encoding;
  // A plain chunk must first add what earlier pushes left over.
  return !left_over_.empty() && KeepsLeftOver(chunk) ? plain : nullptr;
}

EncodedChunk StripeEncoder::Encode(size_t index, absl::Span<const float> gradient) {
  const TraceSpan span(encoding_.trace, kPushRow, "encode", step_);
  const PlannedChunk& chunk = chunks_[index];
  Encoding encoding = *EncodingOf(index);
  encoding.share = ShareAt(encoding, step_.value());
  ChunkContext context;
  context.seed = SeedOf(chunk.begin);
  context.columns = chunk.columns;
  context.memory = &memories_[index];
  if (!momentum_correction_.empty()) gradient = momentum_correction_.Advance(chunk.begin, gradient);
  if (left_over_.empty() || !KeepsLeftOver(chunk)) {
    return EncodeValues(chunk.begin, gradient, encoding, context, encoding_.transforms);
  }
  const auto before = absl::MakeConstSpan(left_over_).subspan(chunk.begin, gradient.size());
  const auto after = absl::MakeSpan(next_left_over_).subspan(chunk.begin, gradient.size());
  // The server refuses values that are not finite; End(false) then drops what they leave over.
  EncodedChunk encoded = EncodeWithFeedback(chunk.begin, gradient, before, encoding, context,
                                            encoding_.transforms, after);
  if (!momentum_correction_.empty() && encoding.sparse())
    momentum_correction_.Mask(chunk.begin, before, after);
  return encoded;
}

uint64_t StripeEncoder::SeedOf(uint64_t begin) const {
  const uint64_t numbers[] = {seed_, push_.value(), stripes_.InVector(stripe_, begin)};
  return Checksum({reinterpret_cast<const char*>(numbers), sizeof(numbers)});
}

void StripeEncoder::End(bool counted) {
  if (!counted) return;
  left_over_.swap(next_left_over_);
  momentum_correction_.Commit();
}

}  // namespace sluice
