#include <glog/logging.h>

#include <algorithm>

#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/vector_copy.h"
#include "tools/bench/codecs/codec_side.h"

namespace sluice::bench {
namespace {

struct Cut {
  uint64_t begin = 0;
  uint64_t elements = 0;
  uint64_t columns = 0;
};

// Parts of at most `most` elements.
void CutRun(Cut run, uint64_t most, std::vector<Cut>* cuts) {
  const uint64_t end = run.begin + run.elements;
  for (; run.begin < end; run.begin += most) {
    cuts->push_back({run.begin, std::min(most, end - run.begin), run.columns});
  }
}

std::vector<Cut> CutRows(const std::vector<TensorShape>& tensors) {
  std::vector<Cut> cuts;
  uint64_t begin = 0;
  for (const TensorShape& tensor : tensors) {
    const uint64_t row = std::max<uint64_t>(tensor.columns, 1);
    CutRun({begin, tensor.elements, tensor.columns}, kMostEncoded / row * row, &cuts);
    begin += tensor.elements;
  }
  return cuts;
}

class SluiceCodec final : public CodecSide {
 public:
  SluiceCodec(const Encoding& encoding, absl::Span<const float> values, std::vector<Cut> cuts)
      : encoding_(encoding), values_(values), cuts_(std::move(cuts)) {}

  uint64_t Encode() override {
    uint64_t bytes = 0;
    for (const Cut& cut : cuts_) bytes += Chunk(cut).payload.size();
    return bytes;
  }

  void Keep() override {
    chunks_.clear();
    for (const Cut& cut : cuts_) chunks_.push_back(Chunk(cut));
  }

  // As a worker decodes parameters.
  void Decode(absl::Span<float> values) override {
    const Writes writes =
        values.size() >= kStreamedElements ? Writes::kPastCaches : Writes::kToCaches;
    for (const EncodedChunk& chunk : chunks_) {
      const absl::Status decoded =
          DecodeValues(chunk, values.subspan(chunk.offset, chunk.how.count), transforms_, writes);
      CHECK(decoded.ok()) << decoded;
    }
  }

 private:
  EncodedChunk Chunk(const Cut& cut) const {
    ChunkContext context;
    context.seed = cut.begin;
    context.columns = cut.columns;
    return EncodeValues(cut.begin, values_.subspan(cut.begin, cut.elements), encoding_, context,
                        transforms_);
  }

  const Encoding encoding_;
  const absl::Span<const float> values_;
  const std::vector<Cut> cuts_;
  const TransformRegistry transforms_ = BuiltinTransforms();
  std::vector<EncodedChunk> chunks_;
};

}  // namespace

std::unique_ptr<CodecSide> MakeSluiceCodec(const Encoding& encoding, absl::Span<const float> values,
                                           const std::vector<TensorShape>& tensors) {
  std::vector<Cut> cuts;
  if (encoding.transform == ValueTransform::kLowRank) {
    cuts = CutRows(tensors);
  } else {
    CutRun({0, values.size(), 0}, kMostEncoded, &cuts);
  }
  return std::make_unique<SluiceCodec>(encoding, values, std::move(cuts));
}

}  // namespace sluice::bench
