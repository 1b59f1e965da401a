// Values of several tensors through whatever encoding a flag may ask for, and back: they are as
// many, finite if they were, and the same if nothing was to be lost.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/encoding/codec.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "common/wire/encoding.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

using Values = std::vector<float>;

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

// One to four tensors "t0", "t1"…, some of them statistics, of one or two dimensions.
Layout TakeLayout(Input& input) {
  std::vector<LayoutRange> ranges;
  const int count = 1 + input.Byte() % 4;
  uint64_t offset = 0;
  for (int i = 0; i < count; ++i) {
    const uint8_t kind = input.Byte();
    LayoutRange range;
    range.name = absl::StrCat("t", i);
    range.shape = {1u + input.Byte()};
    if (kind % 2 == 0) range.shape.push_back(1 + input.Byte() % 32);
    range.kind = kind < 200 ? RangeKind::kParameter : RangeKind::kStatistic;
    range.offset = offset;
    range.length = range.shape[0] * (range.shape.size() > 1 ? range.shape[1] : 1);
    offset = range.end();
    ranges.push_back(std::move(range));
  }
  const auto layout = Layout::Create(std::move(ranges));
  CHECK(layout.ok()) << layout.status();
  return *layout;
}

// Those of `bits`, over and over.
Values Repeated(absl::string_view bits, uint64_t count) {
  Values values(count);
  const size_t whole = bits.size() / sizeof(float);
  for (uint64_t i = 0; whole > 0 && i < count; ++i) {
    std::memcpy(&values[i], bits.data() + i % whole * sizeof(float), sizeof(float));
  }
  return values;
}

void TryChunk(const PlannedChunk& planned, absl::Span<const float> values, uint64_t seed,
              const TransformRegistry& transforms) {
  std::vector<float> memory;
  ChunkContext context;
  context.seed = seed;
  context.columns = planned.columns;
  context.memory = &memory;
  for (int push = 0; push < 2; ++push) {  // the second has a memory
    EncodedChunk chunk =
        EncodeValues(planned.begin, values, *planned.encoding, context, transforms);
    CHECK(chunk.how.count == values.size());
    const auto how = FromProto(ToProto(chunk.how));
    CHECK(how.ok()) << how.status();
    chunk.how = *how;
    Values decoded(values.size());
    const absl::Status status = DecodeValues(chunk, absl::MakeSpan(decoded), transforms);
    CHECK(status.ok()) << status;
    if (AllFinite(values)) CHECK(AllFinite(decoded));
    if (AllFinite(values) && planned.encoding->lossy()) continue;
    CHECK(BytesOf(decoded) == BytesOf(values));
  }
}

// The chunks cover the vector in order, and no statistic is encoded.
void CheckPlan(const Layout& layout, const std::vector<PlannedChunk>& chunks) {
  uint64_t end = 0;
  for (const PlannedChunk& chunk : chunks) {
    CHECK(chunk.begin == end && chunk.end > chunk.begin);
    end = chunk.end;
    if (chunk.encoding == nullptr) continue;
    CHECK(chunk.end - chunk.begin <= kMostEncoded);
    ForEachRun(layout.Runs(), chunk.begin, chunk.end,
               [](RangeKind kind, uint64_t, uint64_t) { CHECK(kind == RangeKind::kParameter); });
  }
  CHECK(end == layout.size());
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const auto choice = ParseEncodingChoice(input.Word());
  if (!choice.ok()) return CheckRefusal(choice.status(), {Reason::kBadArgument});
  const TransformRegistry transforms = BuiltinTransforms();
  const absl::Status known = CheckKnown(*choice, transforms);
  if (!known.ok()) return CheckRefusal(known, {Reason::kBadArgument});
  const uint64_t seed = input.Number();
  const Layout layout = TakeLayout(input);
  const Values values = Repeated(input.Rest(), layout.size());
  const std::vector<PlannedChunk> chunks = PlanChunks(layout, *choice);
  CheckPlan(layout, chunks);
  for (const PlannedChunk& chunk : chunks) {
    if (chunk.encoding == nullptr) continue;
    const auto part = absl::MakeConstSpan(values).subspan(chunk.begin, chunk.end - chunk.begin);
    TryChunk(chunk, part, seed, transforms);
  }
}

}  // namespace sluice
