#include "common/encoding/encoding_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/tensor/stripes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EncodingChoice Choice(const std::string& text) {
  const auto choice = ParseEncodingChoice(text);
  EXPECT_THAT(choice, IsOk());
  return choice.ok() ? *choice : EncodingChoice();
}

// "begin-end encoding" of each chunk.
std::vector<std::string> NamesOf(const std::vector<PlannedChunk>& chunks) {
  std::vector<std::string> names;
  for (const PlannedChunk& chunk : chunks) {
    names.push_back(std::to_string(chunk.begin) + "-" + std::to_string(chunk.end) + " " +
                    (chunk.encoding == nullptr ? "plain" : EncodingName(*chunk.encoding)));
  }
  return names;
}

std::vector<std::string> PlanOf(const Layout& layout, const std::string& text) {
  const EncodingChoice choice = Choice(text);
  return NamesOf(PlanChunks(layout, choice));
}

std::vector<std::string> PlanOf(const Layout& layout, const std::string& text, uint32_t stripes,
                                uint32_t stripe) {
  const EncodingChoice choice = Choice(text);
  return NamesOf(PlanChunks(layout.OfStripe(Stripes(layout.size(), stripes), stripe), choice));
}

// The blocks of the vector that the chunks of all stripes have: [begin, end) of each.
std::set<std::pair<uint64_t, uint64_t>> BlocksOf(const Layout& layout, const std::string& text,
                                                 uint32_t count) {
  const EncodingChoice choice = Choice(text);
  const Stripes stripes(layout.size(), count);
  std::set<std::pair<uint64_t, uint64_t>> blocks;
  for (uint32_t stripe = 0; stripe < count; ++stripe) {
    for (const PlannedChunk& chunk : PlanChunks(layout.OfStripe(stripes, stripe), choice)) {
      if (chunk.encoding == nullptr) continue;
      const uint64_t block = chunk.encoding->block();
      for (uint64_t begin = chunk.begin; begin < chunk.end; begin += block) {
        const uint64_t last = std::min(begin + block, chunk.end) - 1;
        blocks.emplace(stripes.InVector(stripe, begin), stripes.InVector(stripe, last) + 1);
      }
    }
  }
  return blocks;
}

Layout Matrix(uint32_t rows, uint32_t columns) {
  LayoutRange range;
  range.name = "w";
  range.shape = {rows, columns};
  range.length = uint64_t{rows} * columns;
  auto layout = Layout::Create({range});
  EXPECT_THAT(layout, IsOk());
  return *std::move(layout);
}

TEST(EncodingChoiceTest, SaysAllOfItInItsName) {
  for (const char* name : {"float32", "int8", "int8,fc.*=float16,conv1.weight=float32"}) {
    EXPECT_EQ(EncodingChoiceName(Choice(name)), name);
  }
}

TEST(EncodingChoiceTest, IsPlainIfAllOfItIs) {
  EXPECT_TRUE(Choice("none").plain());
  EXPECT_TRUE(Choice("none,a=none").plain());
  EXPECT_FALSE(Choice("none,a=int8").plain());
  EXPECT_FALSE(Choice("int8,a=none").plain());
}

TEST(EncodingChoiceTest, IsSparseIfAnyOfItIs) {
  EXPECT_FALSE(Choice("int8,a=sign").sparse());
  EXPECT_TRUE(Choice("int8,a=top-k").sparse());
  EXPECT_TRUE(Choice("random-k,a=none").sparse());
}

TEST(EncodingChoiceTest, NamesACandidateForMatrices) {
  for (const char* text : {"int8,a=sign", "low-rank:2", "auto:int8,a=low-rank:2"}) {
    EXPECT_EQ(Choice(text).matrix_candidate(), nullptr) << text;
  }
  const EncodingChoice choice = Choice("auto:int8,low-rank:2");
  ASSERT_NE(choice.matrix_candidate(), nullptr);
  EXPECT_EQ(EncodingName(*choice.matrix_candidate()), "low-rank:2");
}

TEST(EncodingChoiceTest, AutoIsPlainOrLosslessUnlessMoreIsAllowed) {
  const EncodingChoice lossless = Choice("auto,fc*=int8");
  EXPECT_TRUE(lossless.automatic());
  EXPECT_FALSE(lossless.plain());
  EXPECT_FALSE(lossless.sparse());
  ASSERT_EQ(lossless.candidates.size(), 3u);
  EXPECT_TRUE(lossless.candidates[0].plain());
  EXPECT_EQ(EncodingName(lossless.candidates[1]), "float32/nonzero/pdict");
  EXPECT_EQ(EncodingName(lossless.candidates[2]), "float32/nonzero/zstd:1");
  EXPECT_EQ(EncodingChoiceName(lossless), "auto,fc*=int8");

  const EncodingChoice allowed = Choice("auto:int8,none,top-k:0.1,int8,fc*=sign");
  EXPECT_TRUE(allowed.sparse());
  ASSERT_EQ(allowed.candidates.size(), 3u);
  EXPECT_TRUE(allowed.candidates[0].plain());
  EXPECT_EQ(EncodingChoiceName(allowed), "auto:float32,int8,top-k:0.1,fc*=sign");
  EXPECT_EQ(EncodingChoiceName(Choice(EncodingChoiceName(allowed))), EncodingChoiceName(allowed));
}

TEST(EncodingChoiceTest, AutoChoosesAmongFew) {
  EXPECT_EQ(Choice("auto:int8,sign,float16,bfloat16").candidates.size(), 5u);
  const absl::Status refused =
      ParseEncodingChoice("auto:int8,sign,float16,bfloat16,top-k").status();
  EXPECT_EQ(ReasonOf(refused), Reason::kBadArgument);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("one encoding too many: \"top-k\"; expected at most 4 in addition to float32"));
}

TEST(EncodingChoiceTest, AutoGoesWithNoMomentum) {
  for (const char* text : {"auto:int8,top-k:0.1:momentum", "auto,fc=top-k:momentum"}) {
    const absl::Status refused = ParseEncodingChoice(text).status();
    EXPECT_EQ(ReasonOf(refused), Reason::kBadArgument) << text;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("momentum")) << text;
  }
  EXPECT_EQ(Choice("auto:top-k:0.1:warmup=8,fc=int8").candidates.size(), 2u);
}

TEST(PlanChunksTest, WithMomentumOnlyStatisticsAreLeftAlone) {
  const Layout layout = LayoutOf({{"a", 10},
                                  {"b", 10},
                                  {"mean", 10, RangeKind::kStatistic},
                                  {"c", 2000},
                                  {"d", 10},
                                  {"e", 2000}});
  EXPECT_THAT(PlanOf(layout, "top-k:momentum,e=none"),
              ElementsAre("0-20 float32", "20-30 plain", "30-2030 top-k:0.01:momentum",
                          "2030-4040 float32"));
}

TEST(PlanChunksTest, WhatAwaitsAChoiceIsCutAsIfItWereMade) {
  const Layout layout = LayoutOf({{"a", 2000}, {"small", 10}, {"b", 2000}, {"fc", 2000}});
  const EncodingChoice choice = Choice("auto,fc=float16");
  const auto chunks = PlanChunks(layout, choice);
  ASSERT_EQ(chunks.size(), 4u);
  EXPECT_TRUE(chunks[0].awaits_choice);
  EXPECT_FALSE(chunks[1].awaits_choice);
  EXPECT_TRUE(chunks[2].awaits_choice);
  EXPECT_FALSE(chunks[3].awaits_choice);
}

TEST(EncodingChoiceTest, RefusesWhatIsNone) {
  for (const char* text : {"auto:", "auto:Int9", "auto,int8", "int8,auto", "Int9", "int8,",
                           "int8,fc", "int8,=float16", "int8,fc=Float17"}) {
    EXPECT_EQ(ReasonOf(ParseEncodingChoice(text).status()), Reason::kBadArgument) << text;
  }
  EXPECT_THAT(std::string(ParseEncodingChoice("int8,fc").status().message()),
              HasSubstr("found \"fc\" after the first comma"));
}

TEST(PlanChunksTest, CutsEachTensorOnItsOwn) {
  const Layout layout = LayoutOf({{"a", 300000}, {"b", 2000}});
  EXPECT_THAT(PlanOf(layout, "int8"), ElementsAre("0-262144 int8", "262144-300000 int8",
                                                  "300000-300032 int8", "300032-302000 int8"));
  EXPECT_THAT(PlanOf(layout, "float16"),
              ElementsAre("0-262144 float16", "262144-300000 float16", "300000-302000 float16"));
}

TEST(PlanChunksTest, SmallTensorsAndStatisticsArePlainAndStayTogether) {
  const Layout layout =
      LayoutOf({{"a", 1023}, {"mean", 5000, RangeKind::kStatistic}, {"b", 1024}, {"c", 10}});
  EXPECT_THAT(PlanOf(layout, "int8"),
              ElementsAre("0-6023 plain", "6023-6144 int8", "6144-7047 int8", "7047-7057 plain"));
}

TEST(PlanChunksTest, TheFirstPatternThatMatchesDecides) {
  const Layout layout =
      LayoutOf({{"conv.weight", 2000}, {"conv.bias", 2000}, {"fc.weight", 2000}, {"fc.bias", 10}});
  EXPECT_THAT(PlanOf(layout, "int8,conv.bias=none,conv*=sign,fc.bias=float16"),
              ElementsAre("0-2000 sign", "2000-4000 plain", "4000-4096 int8", "4096-6000 int8",
                          "6000-6010 float16"));
}

TEST(PlanChunksTest, AMatrixIsCutBetweenItsRows) {
  const EncodingChoice choice = Choice("low-rank:4");
  const auto chunks = PlanChunks(Matrix(1000, 300), choice);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].end, 262144u / 300 * 300);
  EXPECT_EQ(chunks[0].columns, 300u);
  EXPECT_EQ(chunks[1].end, 300000u);
  EXPECT_EQ(chunks[1].columns, 300u);
}

TEST(PlanChunksTest, RowsThatAreTooLongForAChunkAreCut) {
  const EncodingChoice choice = Choice("int8");
  const auto chunks = PlanChunks(Matrix(2, 300000), choice);
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].end, 262144u);
  EXPECT_EQ(chunks[2].end, 600000u);
}

TEST(PlanChunksTest, AStripeHasTheEncodingThatTheWholeTensorHas) {
  const Layout layout =
      LayoutOf({{"a", 1023}, {"b", 1100}, {"mean", 5000, RangeKind::kStatistic}, {"c", 30000}});
  ASSERT_EQ(Stripes(layout.size(), 2).unit(), 64u);
  // The odd units: 511 elements of "a", then 1 + 8 · 64 + 11 of "b", 53 + 38 · 64 + 19 of "mean".
  EXPECT_THAT(
      PlanOf(layout, "float16", 2, 1),
      ElementsAre("0-511 plain", "511-1035 float16", "1035-3539 plain", "3539-18560 float16"));
}

TEST(PlanChunksTest, AStripeHasNoRows) {
  const EncodingChoice choice = Choice("float16");
  for (const PlannedChunk& chunk :
       PlanChunks(Matrix(1000, 300).OfStripe(Stripes(300000, 2), 1), choice)) {
    EXPECT_EQ(chunk.columns, 0u);
  }
}

// A bias, a matrix that low-rank makes smaller, one that it does not, and one of two chunks.
TEST(PlanWholeTest, HasTheMatricesThatLowRankMakesSmaller) {
  const Layout layout = *Layout::Create({{"bias", {1200}, {}, {}, 0, 1200},
                                         {"w", {40, 50}, {}, {}, 1200, 2000},
                                         {"thin", {600, 2}, {}, {}, 3200, 1200},
                                         {"large", {1000, 300}, {}, {}, 4400, 300000}});
  const EncodingChoice choice = Choice("low-rank:2,bias=int8");
  EXPECT_THAT(
      NamesOf(PlanWhole(layout, choice)),
      ElementsAre("1200-3200 low-rank:2", "4400-266300 low-rank:2", "266300-304400 low-rank:2"));
  const Stripes stripes(layout.size(), 2);
  ASSERT_EQ(stripes.unit(), 512u);
  std::vector<std::string> of_vector;
  for (const PlannedChunk& chunk : PlanChunks(layout.OfStripe(stripes, 1), choice)) {
    of_vector.push_back(std::to_string(chunk.begin) + "-" + std::to_string(chunk.end) +
                        (chunk.elsewhere ? " whole" : ""));
  }
  // The odd units. "thin" has a part of its own, which is sent as float32.
  EXPECT_THAT(of_vector, ElementsAre("0-512", "512-1536 whole", "1536-2048", "2048-152064 whole"));
}

TEST(PlanWholeTest, LeavesOutMatricesOfWhichAChunkHasTooFewRows) {
  const auto whole = [](uint32_t rows, uint32_t columns, const std::string& text) {
    const EncodingChoice choice = Choice(text);
    return NamesOf(PlanWhole(Matrix(rows, columns), choice)).size();
  };
  EXPECT_EQ(whole(64, 200000, "low-rank:4"), 0u);  // a chunk has one row
  EXPECT_EQ(whole(64, 64, "low-rank:32"), 1u);  // as many numbers as the matrix, as with one server
  EXPECT_EQ(whole(64, 63, "low-rank:32"), 0u);
}

TEST(PlanChunksTest, BlocksAreTheSameWithAnyNumberOfStripes) {
  const Layout layout =
      LayoutOf({{"a", 300'001}, {"b", 77}, {"c", 900'000}, {"d", 1500}, {"e", 1024}});
  ASSERT_EQ(Stripes(layout.size(), 2).unit() % kSignBlock, 0u);
  for (const char* encoding : {"int8", "sign", "int8,c=sign", "sign:momentum"}) {
    const auto expected = BlocksOf(layout, encoding, 1);
    EXPECT_GT(expected.size(), 1000u);
    for (const uint32_t stripes : {2, 3, 5}) {
      EXPECT_EQ(BlocksOf(layout, encoding, stripes), expected) << encoding << ", " << stripes;
    }
  }
}

TEST(PlanChunksTest, WithoutAnyEncodingItIsOneRun) {
  EXPECT_THAT(PlanOf(LayoutOf({{"a", 300000}, {"b", 2000}}), "none"),
              ElementsAre("0-302000 plain"));
}

}  // namespace
}  // namespace sluice
