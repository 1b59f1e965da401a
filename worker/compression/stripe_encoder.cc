#include "worker/compression/stripe_encoder.h"

#include <algorithm>
#include <vector>

namespace sluice {

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
  const std::vector<PlannedChunk>& chunks = encoder_.chunks();
  const auto first = std::partition_point(
      chunks.begin(), chunks.end(), [&](const PlannedChunk& chunk) { return chunk.end <= begin; });
  for (auto chunk = first; chunk != chunks.end() && chunk->begin < end; ++chunk) {
    if (chunk->elsewhere) continue;
    const auto index = static_cast<size_t>(chunk - chunks.begin());
    const uint64_t from = std::max(begin, chunk->begin);
    uint64_t to = std::min(end, chunk->end);
    const bool plain = encoder_.EncodingOf(index) == nullptr;
    for (size_t next = index + 1; plain && to < end && encoder_.EncodingOf(next) == nullptr;
         ++next) {
      to = std::min(end, (++chunk)->end);
    }
    bool open = true;
    if (plain) {
      open = SendStripe(part, from, to, push);
    } else if (from == chunk->begin && to == chunk->end) {
      open = push.Send(encoder_.Encode(index, part.Part(from, to).values));
    } else {
      continue;  // a later call has the whole chunk
    }
    if (!open || !sent.Add(from, to - from).ok()) return false;
  }
  return true;
}

}  // namespace sluice
