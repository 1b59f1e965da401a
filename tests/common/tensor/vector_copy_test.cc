#include "common/tensor/vector_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using Copy = void (*)(FloatPiece from, absl::Span<float> to);

// Copies at every alignment of source and target, with every remainder.
void ExpectCopiesEveryElementAndNothingElse(Copy copy) {
  constexpr size_t kMost = 130;
  for (size_t shift = 0; shift < sizeof(float); ++shift) {
    for (size_t begin = 0; begin < 17; ++begin) {
      for (const size_t size : {0, 1, 3, 4, 15, 16, 17, 31, 32, 33, 52, 64, 67, 99}) {
        std::vector<float> expected(kMost, -1);
        for (size_t i = 0; i < size; ++i) expected[begin + i] = static_cast<float>(i + 1);
        std::vector<char> bytes(kMost * sizeof(float));
        if (size > 0) std::memcpy(&bytes[shift], &expected[begin], size * sizeof(float));
        std::vector<float> to(kMost, -1);
        copy(FloatPiece(reinterpret_cast<const UnalignedFloat*>(&bytes[shift]), size),
             absl::MakeSpan(to).subspan(begin, size));
        EndStreams();
        ASSERT_EQ(to, expected) << "shift " << shift << ", begin " << begin << ", size " << size;
      }
    }
  }
}

TEST(VectorCopyTest, CopyToCopiesEveryElementAndNothingElse) {
  ExpectCopiesEveryElementAndNothingElse(CopyTo);
}

TEST(VectorCopyTest, StreamToCopiesEveryElementAndNothingElse) {
  ExpectCopiesEveryElementAndNothingElse(StreamTo);
}

}  // namespace
}  // namespace sluice
