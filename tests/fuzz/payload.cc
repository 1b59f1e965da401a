// Payloads of encoded chunks, with whatever their sender says of them: a decoder refuses them, or
// writes as many values as there are, and those that the format's page says.
#include <glog/logging.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/wire/encoding.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/oracles/plain_decoder.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

// In memory that ends with the last.
struct Decoded {
  absl::Status status;
  std::unique_ptr<float[]> values;
};

// Over values that all have these bytes.
Decoded DecodeOver(int byte, const EncodedChunk& chunk) {
  Decoded decoded;
  decoded.values.reset(new float[chunk.how.count]);
  std::memset(decoded.values.get(), byte, chunk.how.count * sizeof(float));
  decoded.status = DecodeValues(
      chunk, absl::MakeSpan(decoded.values.get(), static_cast<size_t>(chunk.how.count)),
      BuiltinTransforms());
  return decoded;
}

// Whether they have the same bits. Which of two NaNs a sum becomes is the compiler's choice.
bool Same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

void CompareWithThePage(const EncodedChunk& chunk, const Decoded& decoded) {
  const auto expected = DecodePlainly(chunk.how, chunk.payload);
  CHECK(decoded.status.ok() == expected.has_value()) << decoded.status;
  if (!expected.has_value()) return;
  CHECK(expected->size() == chunk.how.count);
  for (size_t i = 0; i < expected->size(); ++i) {
    CHECK(Same(decoded.values[i], (*expected)[i])) << "element " << i;
  }
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool honest = input.Byte() % 8 != 0;
  v1::ChunkEncoding message;
  const absl::string_view fields = input.Word();
  if (!message.ParseFromArray(fields.data(), static_cast<int>(fields.size()))) return;
  const auto how = FromProto(message);
  if (!how.ok()) return CheckRefusal(how.status(), {Reason::kBadChunk});

  EncodedChunk chunk;
  chunk.how = *how;
  chunk.payload = input.Rest();
  chunk.checksum = honest ? Checksum(chunk.payload) : message.seed();
  const Decoded decoded = DecodeOver(0x5a, chunk);
  const Decoded again = DecodeOver(0xa5, chunk);
  CHECK(decoded.status == again.status);
  if (!decoded.status.ok()) {
    CheckRefusal(decoded.status, {Reason::kBadChunk, Reason::kCorruptChunk, Reason::kBadArgument});
  } else {  // every element was written
    CHECK(std::memcmp(decoded.values.get(), again.values.get(), how->count * sizeof(float)) == 0);
  }
  const bool intact = ReasonOf(decoded.status) != Reason::kCorruptChunk;
  if (intact && how->compressor != Compressor::kZstd) CompareWithThePage(chunk, decoded);
}

}  // namespace sluice
