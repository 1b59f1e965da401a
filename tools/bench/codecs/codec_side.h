// One side of the race of codecs: an encoding of Sluice's, or a peer's compressor.

#ifndef SLUICE_TOOLS_BENCH_CODECS_CODEC_SIDE_H_
#define SLUICE_TOOLS_BENCH_CODECS_CODEC_SIDE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "tools/bench/codecs/model_vectors.h"

namespace sluice::bench {

// Encodes the values that it was made of, chunk by chunk of at most 2^18. To be used by one thread.
class CodecSide {
 public:
  virtual ~CodecSide() = default;

  // Encodes them and lets what comes of it go, chunk by chunk, as one that has sent it. Returns how
  // many bytes that were.
  virtual uint64_t Encode() = 0;

  // Encodes them and keeps what comes of it.
  virtual void Keep() = 0;

  // Decodes what was kept, as many values.
  virtual void Decode(absl::Span<float> values) = 0;
};

// EncodeValues() and DecodeValues(). Chunks of a low-rank encoding are whole rows of one tensor,
// which it begins with each time as if there had been no push before. `values` outlives the side.
std::unique_ptr<CodecSide> MakeSluiceCodec(const Encoding& encoding, absl::Span<const float> values,
                                           const std::vector<TensorShape>& tensors);

// The peers: "blosc:blosclz", "blosc:lz4", "blosc:snappy", with byte shuffle at level 5 and one
// thread, and "lz4". Their libraries are looked for now; an error names the package that is
// missing.
const std::vector<std::string>& PeerCodecs();
absl::StatusOr<std::unique_ptr<CodecSide>> MakePeerCodec(const std::string& name,
                                                         absl::Span<const float> values);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_CODEC_SIDE_H_
