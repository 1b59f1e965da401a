#include "worker/data/tables/triple_data.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/worker/data/tables/wordnet_folder.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

// A graph whose nouns are a chain of `synsets`, so that some of its triples are for the test.
void WriteChain(const WordnetFolder& folder, int synsets) {
  std::string lines;
  for (int i = 1; i <= synsets; ++i) {
    const int next = i % synsets + 1;
    const auto place = [](int number) { return std::to_string(10'000'000 + number); };
    lines += place(i) + " 03 n 01 word 0 001 ~ " + place(next) + " n 0000 | word\n";
  }
  folder.Write("noun", lines);
  for (const char* part : {"verb", "adj", "adv"}) folder.Write(part, "");
}

// Half of a batch has the same other synsets as the whole.
TEST(TripleDataTest, ABatchHasItsTriplesAndTheOtherSynsetsOfItsStep) {
  const WordnetFolder folder;
  WriteChain(folder, 200);
  const auto data = TripleData::Read(folder.path());
  ASSERT_THAT(data, IsOk());
  const Batch two = data->MakeBatch({7, 5}, 0, 3);
  const Batch one = data->MakeBatch({5}, 1, 3);
  ASSERT_THAT(two.ids, SizeIs(4 + TripleData::kOthers));
  ASSERT_THAT(one.ids, SizeIs(2 + TripleData::kOthers));
  EXPECT_THAT(two.labels, SizeIs(2));
  EXPECT_EQ(one.ids[0], two.ids[1]);
  EXPECT_EQ(one.ids[1], two.ids[3]);
  EXPECT_EQ(one.ids[1], (one.ids[0] + 1) % 200);
  EXPECT_TRUE(std::equal(one.ids.begin() + 2, one.ids.end(), two.ids.begin() + 4));
  EXPECT_THAT(one.ids, Each(Lt(200)));
  EXPECT_NE(data->MakeBatch({5}, 0, 4).ids, one.ids);
}

TEST(TripleDataTest, TheTestComparesWithAllSynsets) {
  const WordnetFolder folder;
  WriteChain(folder, 200);
  const auto data = TripleData::Read(folder.path());
  ASSERT_THAT(data, IsOk());
  const Batch& test = data->test();
  EXPECT_EQ(data->size() + test.size(), 200);
  std::vector<int64_t> all(200);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(std::vector<int64_t>(test.ids.begin() + 2 * test.size(), test.ids.end()), all);
}

TEST(TripleDataTest, SaysWhatItMisses) {
  EXPECT_THAT(TripleData::Read("/nowhere"),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("wordnet-base")));
  const WordnetFolder folder;
  WriteChain(folder, 1);
  EXPECT_THAT(TripleData::Read(folder.path()),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("expected those of WordNet")));
}

}  // namespace
}  // namespace sluice
