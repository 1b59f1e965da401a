#include "worker/compression/joined_parts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// The parts of a vector of 10 elements that lies in one memory.
class JoinedPartsTest : public ::testing::Test {
 protected:
  // Adds [begin, end), and returns the run's [begin, end).
  std::pair<uint64_t, uint64_t> Add(uint64_t begin, uint64_t end) {
    const JoinedParts::Run run = parts_.Add(begin, vector_.Part(begin, end - begin));
    EXPECT_EQ(run.floats.values.data(), vector_.values.data() + run.offset);
    return {run.offset, run.offset + run.floats.values.size()};
  }

  using Range = std::pair<uint64_t, uint64_t>;

  const SharedFloats vector_ = Share(Values(10));
  JoinedParts parts_;
};

TEST_F(JoinedPartsTest, JoinNeighboursOnBothSides) {
  EXPECT_EQ(Add(6, 8), Range(6, 8));
  EXPECT_EQ(Add(0, 2), Range(0, 2));
  EXPECT_EQ(Add(4, 6), Range(4, 8));
  EXPECT_EQ(Add(8, 10), Range(4, 10));
  EXPECT_EQ(Add(2, 4), Range(0, 10));
}

TEST_F(JoinedPartsTest, InOtherMemoryAreNoNeighbours) {
  Add(0, 4);
  const SharedFloats other = Share(Values(3));
  EXPECT_EQ(parts_.Add(4, other).offset, 4u);
  EXPECT_EQ(Add(7, 10), Range(7, 10));
}

TEST_F(JoinedPartsTest, AreForgotten) {
  Add(0, 4);
  parts_.Clear();
  EXPECT_EQ(Add(4, 6), Range(4, 6));
}

}  // namespace
}  // namespace sluice
