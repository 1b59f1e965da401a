// One side of the codec benchmark: an encoding of Sluice, or a compressor of a peer.

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

// Encodes the values that it was created with, in chunks of at most 2^18. Only one thread uses it.
class CodecSide {
 public:
  virtual ~CodecSide() = default;

  // Encodes the values and frees each encoded chunk, as a sender does. Returns the encoded bytes.
  virtual uint64_t Encode() = 0;

  // Encodes the values and keeps the encoded chunks.
  virtual void Keep() = 0;

  // Decodes the chunks that Keep() kept into `values`, which has the size of the original.
  virtual void Decode(absl::Span<float> values) = 0;
};

// Measures EncodeValues() and DecodeValues(). Chunks of a low-rank encoding are whole rows of one
// tensor, and each encoding starts as if there had been no push before. `values` must outlive it.
std::unique_ptr<CodecSide> MakeSluiceCodec(const Encoding& encoding, absl::Span<const float> values,
                                           const std::vector<TensorShape>& tensors);

// PeerCodecs() returns the names of the peers: "blosc:blosclz", "blosc:lz4" and "blosc:snappy",
// with byte shuffle at level 5 and one thread, and "lz4". MakePeerCodec() opens the peer's library;
// its error names the missing package.
const std::vector<std::string>& PeerCodecs();
absl::StatusOr<std::unique_ptr<CodecSide>> MakePeerCodec(const std::string& name,
                                                         absl::Span<const float> values);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_CODEC_SIDE_H_
