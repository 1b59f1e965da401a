#include "common/encoding/encoding_trial.h"

#include <glog/logging.h>

#include "common/encoding/codec.h"

namespace sluice {
namespace {

EncodingCost TryChunk(const Encoding& encoding, const PlannedChunk& chunk,
                      absl::Span<const float> values, bool feedback,
                      const TransformRegistry& transforms, const Clock& clock) {
  ChunkContext context;
  context.columns = chunk.columns;
  std::vector<float> decoded(values.size());
  const absl::Time begin = clock.Now();
  const EncodedChunk encoded = EncodeValues(chunk.begin, values, encoding, context, transforms);
  const absl::Time middle = clock.Now();
  const absl::Status status = DecodeValues(encoded, absl::MakeSpan(decoded), transforms);
  CHECK(status.ok()) << status;
  EncodingCost cost;
  cost.bytes = encoded.payload.size();
  cost.encode = middle - begin;
  cost.decode = clock.Now() - middle;
  if (feedback && encoding.lossy()) cost.encode += cost.decode;
  return cost;
}

// Adds `share` times `part` to `sum`.
void Add(const EncodingCost& part, double share, EncodingCost* sum) {
  sum->bytes += static_cast<uint64_t>(static_cast<double>(part.bytes) * share);
  sum->encode += part.encode * share;
  sum->decode += part.decode * share;
}

}  // namespace

double EncodingTrial::ratio() const {
  const auto plain = static_cast<double>(elements * sizeof(float));
  return cost.bytes == 0 ? 1 : plain / static_cast<double>(cost.bytes);
}

void EncodingTrial::Append(const EncodingTrial& other) {
  Add(other.cost, 1, &cost);
  elements += other.elements;
  hardly_shrinks.insert(hardly_shrinks.end(), other.hardly_shrinks.begin(),
                        other.hardly_shrinks.end());
}

EncodingTrial TryEncoding(const Encoding& encoding, absl::Span<const PlannedChunk> chunks,
                          const StripeSpan<const float>& values, bool feedback,
                          const TransformRegistry& transforms, const Clock& clock,
                          absl::Duration longest) {
  EncodingTrial trial;
  trial.hardly_shrinks.resize(chunks.size());
  EncodingCost tried;  // of all chunks tried so far, also those that hardly shrink
  uint64_t elements = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const PlannedChunk& chunk = chunks[i];
    if (!chunk.awaits_choice) continue;
    const uint64_t size = chunk.end - chunk.begin;
    const uint64_t plain = size * sizeof(float);
    trial.elements += size;
    if (encoding.plain()) {
      trial.cost.bytes += plain;
      continue;
    }
    if (tried.encode + tried.decode > longest) {
      Add(tried, static_cast<double>(size) / static_cast<double>(elements), &trial.cost);
      continue;
    }
    std::vector<float> gathered(size);
    Gather(values, chunk.begin, chunk.end, gathered.data());
    const EncodingCost cost = TryChunk(encoding, chunk, gathered, feedback, transforms, clock);
    elements += size;
    Add(cost, 1, &tried);
    trial.hardly_shrinks[i] =
        static_cast<double>(cost.bytes) > kHardlyShrinks * static_cast<double>(plain);
    Add(trial.hardly_shrinks[i] ? EncodingCost{plain, {}, {}} : cost, 1, &trial.cost);
  }
  return trial;
}

}  // namespace sluice
