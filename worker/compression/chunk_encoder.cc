#include "worker/compression/chunk_encoder.h"

#include <algorithm>

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

ChunkEncoder::ChunkEncoder(std::vector<PlannedChunk> chunks, Stripe stripe,
                           const GradientEncoding& encoding, uint64_t seed)
    : encoding_(encoding),
      stripe_(stripe),
      seed_(seed),
      chunks_(std::move(chunks)),
      memories_(chunks_.size()),
      encoded_(chunks_.size()),
      momentum_correction_(encoding.choice.momentum() ? stripe.all.SizeOf(stripe.index) : 0,
                           encoding.momentum) {
  const bool keeps = std::any_of(chunks_.begin(), chunks_.end(), [this](const PlannedChunk& chunk) {
    return KeepsLeftOver(chunk);
  });
  if (!encoding_.error_feedback || !keeps) return;
  left_over_.assign(stripe.all.SizeOf(stripe.index), 0.0f);
  next_left_over_ = left_over_;
}

void ChunkEncoder::Begin(Sequence push, Step step) {
  push_ = push;
  step_ = step;
  std::fill(encoded_.begin(), encoded_.end(), absl::nullopt);
}

void ChunkEncoder::ScaleLeftOver(float factor) {
  for (float& value : left_over_) value *= factor;
}

bool ChunkEncoder::KeepsLeftOver(const PlannedChunk& chunk) const {
  if (chunk.elsewhere) return false;
  if (chunk.awaits_choice) return AnyLossy(encoding_.choice.candidates);
  if (chunk.encoding == nullptr) return false;
  const bool is_sent_exactly =
      chunk.encoding->transform == ValueTransform::kLowRank && chunk.columns == 0;
  return chunk.encoding->lossy() && !is_sent_exactly;
}

const Encoding* ChunkEncoder::EncodingOf(size_t index) const {
  static const auto* const plain = new Encoding();
  const PlannedChunk& chunk = chunks_[index];
  if (!chunk.awaits_choice) return chunk.encoding;
  const bool worth_it = index >= plain_.size() || !plain_[index];
  if (worth_it && !chunk.encoding->plain()) return chunk.encoding;
  // A plain chunk must first add what earlier pushes left over.
  return !left_over_.empty() && KeepsLeftOver(chunk) ? plain : nullptr;
}

const EncodedChunk& ChunkEncoder::Encode(size_t index, absl::Span<const float> gradient) {
  absl::optional<EncodedChunk>& encoded = encoded_[index];
  if (!encoded.has_value()) encoded = EncodeNow(index, gradient);
  return *encoded;
}

EncodedChunk ChunkEncoder::EncodeNow(size_t index, absl::Span<const float> gradient) {
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

uint64_t ChunkEncoder::SeedOf(uint64_t begin) const {
  const uint64_t numbers[] = {seed_, push_.value(), stripe_.all.InVector(stripe_.index, begin)};
  return Checksum({reinterpret_cast<const char*>(numbers), sizeof(numbers)});
}

void ChunkEncoder::End(bool counted) {
  if (!counted) return;
  left_over_.swap(next_left_over_);
  momentum_correction_.Commit();
}

}  // namespace sluice
