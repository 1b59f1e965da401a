#include "common/tensor/coverage.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

struct Chunk {
  uint64_t offset;
  uint64_t length;
};

// The coverage of a vector of `size` elements after `chunks` have arrived.
Coverage Arrived(uint64_t size, const std::vector<Chunk>& chunks) {
  Coverage coverage(size);
  for (const Chunk& chunk : chunks) EXPECT_THAT(coverage.Add(chunk.offset, chunk.length), IsOk());
  return coverage;
}

// A model of Coverage: one flag for each element.
class Bitmap {
 public:
  explicit Bitmap(size_t size) : arrived_(size, false) {}

  bool Add(size_t offset, size_t length) {
    if (length == 0 || offset + length > arrived_.size()) return false;
    const auto begin = arrived_.begin() + offset;
    if (std::find(begin, begin + length, true) != begin + length) return false;
    std::fill(begin, begin + length, true);
    return true;
  }

  size_t covered() const { return std::count(arrived_.begin(), arrived_.end(), true); }

  // "elements 3 to 5 are missing", or nothing.
  std::string FirstGap() const {
    const auto begin = std::find(arrived_.begin(), arrived_.end(), false);
    if (begin == arrived_.end()) return "";
    const auto end = std::find(begin, arrived_.end(), true);
    return absl::StrCat("elements ", begin - arrived_.begin(), " to ", end - arrived_.begin() - 1,
                        " are missing");
  }

 private:
  std::vector<bool> arrived_;
};

TEST(CoverageTest, IsCompleteOnceEveryElementHasArrived) {
  Coverage coverage(10);
  EXPECT_THAT(
      coverage.CheckComplete(),
      IsError(Reason::kBadChunk, HasSubstr("elements 0 to 9 are missing: 0 of 10 arrived")));
  EXPECT_THAT(coverage.Add(0, 10), IsOk());
  EXPECT_THAT(coverage.CheckComplete(), IsOk());
  EXPECT_EQ(coverage.covered(), 10u);
}

TEST(CoverageTest, OfAnEmptyVectorIsComplete) {
  Coverage coverage(0);
  EXPECT_THAT(coverage.CheckComplete(), IsOk());
  EXPECT_THAT(coverage.Add(0, 1), IsError(Reason::kBadChunk, HasSubstr("vector of 0 elements")));
}

TEST(CoverageTest, TakesChunksInEveryOrder) {
  std::vector<Chunk> chunks = {{0, 3}, {3, 1}, {4, 5}, {9, 2}, {11, 1}};
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    std::vector<Chunk> permuted;
    for (const int i : order) permuted.push_back(chunks[i]);
    EXPECT_THAT(Arrived(12, permuted).CheckComplete(), IsOk());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(CoverageTest, NamesTheFirstGap) {
  EXPECT_THAT(
      Arrived(10, {{2, 3}, {7, 3}}).CheckComplete(),
      IsError(Reason::kBadChunk, HasSubstr("elements 0 to 1 are missing: 6 of 10 arrived")));
  EXPECT_THAT(Arrived(10, {{0, 3}, {7, 3}}).CheckComplete(),
              IsError(Reason::kBadChunk, HasSubstr("elements 3 to 6 are missing")));
  EXPECT_THAT(Arrived(10, {{0, 9}}).CheckComplete(),
              IsError(Reason::kBadChunk, HasSubstr("elements 9 to 9 are missing")));
}

TEST(CoverageTest, RefusesAnEmptyChunk) {
  Coverage coverage(10);
  EXPECT_THAT(coverage.Add(0, 0), IsError(Reason::kBadChunk, HasSubstr("is empty")));
  EXPECT_THAT(coverage.Add(10, 0), IsError(Reason::kBadChunk, HasSubstr("is empty")));
}

TEST(CoverageTest, RefusesChunksOutsideTheVector) {
  const std::vector<Chunk> outside = {{10, 1}, {9, 2}, {0, 11}, {11, 1}, {kLargest, 1}};
  for (const Chunk& chunk : outside) {
    Coverage coverage(10);
    EXPECT_THAT(coverage.Add(chunk.offset, chunk.length),
                IsError(Reason::kBadChunk,
                        AllOf(HasSubstr(absl::StrCat("chunk of ", chunk.length,
                                                     " elements at offset ", chunk.offset)),
                              HasSubstr("outside the vector of 10 elements"))));
    EXPECT_EQ(coverage.covered(), 0u);
  }
}

TEST(CoverageTest, RefusesChunksWhoseEndWraps) {
  const std::vector<Chunk> wrapping = {{1, kLargest},
                                       {5, kLargest - 4},
                                       {kLargest, kLargest},
                                       {10, kLargest - 9},
                                       {2, kLargest - 1}};
  for (const Chunk& chunk : wrapping) {
    EXPECT_THAT(Coverage(10).Add(chunk.offset, chunk.length),
                IsError(Reason::kBadChunk, HasSubstr("lies outside")));
  }
}

TEST(CoverageTest, WorksUpToTheLastElementOfTheLargestVector) {
  Coverage coverage(kLargest);
  EXPECT_THAT(coverage.Add(kLargest - 1, 1), IsOk());
  EXPECT_THAT(coverage.Add(kLargest - 2, 2), IsError(Reason::kBadChunk, HasSubstr("overlaps")));
  EXPECT_THAT(coverage.Add(0, kLargest - 1), IsOk());
  EXPECT_THAT(coverage.CheckComplete(), IsOk());
}

// Every way to overlap [10, 20) among [0, 5) and [25, 30).
TEST(CoverageTest, RefusesOverlapsOfEveryShapeAndKeepsWhatItKnew) {
  const std::vector<Chunk> overlapping = {{10, 10}, {12, 3}, {10, 1}, {19, 1}, {5, 6},
                                          {5, 15},  {8, 14}, {19, 2}, {15, 8}, {10, 15},
                                          {0, 30},  {4, 17}, {0, 5},  {29, 1}, {24, 2}};
  for (const Chunk& chunk : overlapping) {
    Coverage coverage = Arrived(30, {{25, 5}, {10, 10}, {0, 5}});
    EXPECT_THAT(coverage.Add(chunk.offset, chunk.length),
                IsError(Reason::kBadChunk,
                        AllOf(HasSubstr(absl::StrCat("at offset ", chunk.offset, " overlaps")),
                              HasSubstr("which arrived before"))));
    EXPECT_EQ(coverage.covered(), 20u);
    EXPECT_THAT(coverage.Add(5, 5), IsOk());
    EXPECT_THAT(coverage.Add(20, 5), IsOk());
    EXPECT_THAT(coverage.CheckComplete(), IsOk());
  }
}

TEST(CoverageTest, AgreesWithABitmapOnRandomChunks) {
  SCOPED_TRACE(HowToRepeat());
  std::mt19937 random(RunSeed());
  for (int round = 0; round < 300; ++round) {
    const size_t size = 1 + random() % 60;
    Coverage coverage(size);
    Bitmap bitmap(size);
    for (int chunk = 0; chunk < 80; ++chunk) {
      const size_t offset = random() % (size + 2);
      const size_t length = random() % (1 + random() % 8);
      ASSERT_EQ(coverage.Add(offset, length).ok(), bitmap.Add(offset, length))
          << "round " << round << ": " << length << " at " << offset;
      ASSERT_EQ(coverage.covered(), bitmap.covered());
      const absl::Status complete = coverage.CheckComplete();
      ASSERT_EQ(complete.ok(), bitmap.FirstGap().empty());
      ASSERT_THAT(std::string(complete.message()), HasSubstr(bitmap.FirstGap()));
    }
  }
}

// Elements 0, 2, 4…: as many pieces as are allowed.
class FragmentedTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPieces = Coverage::kMaxFragments;

  FragmentedTest() : coverage_(kPieces * 4) {
    for (uint64_t i = 0; i < kPieces; ++i) EXPECT_THAT(coverage_.Add(i * 2, 1), IsOk());
  }

  Coverage coverage_;
};

TEST_F(FragmentedTest, RefusesAnotherPieceAndForgetsNothing) {
  EXPECT_THAT(coverage_.Add(kPieces * 3, 1),
              IsError(Reason::kBadChunk, HasSubstr("more than 4096 pieces")));
  EXPECT_EQ(coverage_.covered(), kPieces);
}

TEST_F(FragmentedTest, TakesWhatTouchesAPiece) {
  EXPECT_THAT(coverage_.Add(kPieces * 2 - 1, 1), IsOk());
  EXPECT_THAT(coverage_.Add(1, 1), IsOk());
}

TEST_F(FragmentedTest, TakesAnotherPieceOnceTwoHaveJoined) {
  EXPECT_THAT(coverage_.Add(1, 1), IsOk());
  EXPECT_THAT(coverage_.Add(kPieces * 3, 1), IsOk());
  EXPECT_THAT(coverage_.Add(kPieces * 3 + 2, 1), IsError(Reason::kBadChunk, HasSubstr("pieces")));
}

TEST_F(FragmentedTest, TellsItsFirstGap) {
  EXPECT_EQ(coverage_.FirstGap()->begin, 1u);
  EXPECT_EQ(coverage_.FirstGap()->end, 2u);
  EXPECT_THAT(coverage_.Add(1, 1), IsOk());
  EXPECT_EQ(coverage_.FirstGap()->begin, 3u);
}

TEST(CoverageGapTest, IsWhatHasNotArrivedYet) {
  Coverage coverage(10);
  EXPECT_EQ(coverage.FirstGap()->begin, 0u);
  EXPECT_EQ(coverage.FirstGap()->end, 10u);
  EXPECT_THAT(coverage.Add(7, 2), IsOk());
  EXPECT_EQ(coverage.FirstGap()->end, 7u);
  EXPECT_THAT(coverage.Add(0, 7), IsOk());
  EXPECT_EQ(coverage.FirstGap()->begin, 9u);
  EXPECT_EQ(coverage.FirstGap()->end, 10u);
  EXPECT_THAT(coverage.Add(9, 1), IsOk());
  EXPECT_FALSE(coverage.FirstGap().has_value());
}

TEST(CoverageGapTest, MayBeTheFirstOneAfterAnElement) {
  Coverage coverage(10);
  EXPECT_THAT(coverage.Add(2, 2), IsOk());
  EXPECT_THAT(coverage.Add(7, 3), IsOk());
  const auto gap = [&coverage](uint64_t from) -> std::vector<uint64_t> {
    const auto found = coverage.FirstGap(from);
    if (!found.has_value()) return {};
    return {found->begin, found->end};
  };
  EXPECT_THAT(gap(1), ElementsAre(1, 2));
  EXPECT_THAT(gap(2), ElementsAre(4, 7));
  EXPECT_THAT(gap(4), ElementsAre(4, 7));
  EXPECT_THAT(gap(6), ElementsAre(6, 7));
  EXPECT_THAT(gap(7), IsEmpty());
  EXPECT_THAT(gap(10), IsEmpty());
}

TEST_F(FragmentedTest, CanStillBeCompleted) {
  for (uint64_t i = 0; i < kPieces; ++i) EXPECT_THAT(coverage_.Add(i * 2 + 1, 1), IsOk());
  EXPECT_THAT(coverage_.Add(kPieces * 2, kPieces * 2), IsOk());
  EXPECT_THAT(coverage_.CheckComplete(), IsOk());
}

TEST(CoverageTest, ChunksInOrderNeverRunOutOfPieces) {
  const uint64_t chunks = Coverage::kMaxFragments * 4;
  Coverage coverage(chunks * 3);
  for (uint64_t i = 0; i < chunks; ++i) ASSERT_THAT(coverage.Add(i * 3, 3), IsOk());
  EXPECT_THAT(coverage.CheckComplete(), IsOk());
}

}  // namespace
}  // namespace sluice
