// The index of a bucket's records.

#include "server/tables/record_index.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "server/tables/record_pages.h"

namespace sluice {
namespace {

constexpr RowId kMany = 100'000;  // with tags of 16 bits, some records share theirs

class RecordIndexTest : public ::testing::Test {
 protected:
  RowRecord* Insert(RowId id) {
    RowRecord* const record = pages_.Allocate(id);
    index_.Insert(record);
    return record;
  }

  std::vector<RowId> Ids() const {
    std::vector<RowId> ids;
    index_.ForEach([&](const RowRecord* record) {
      ids.push_back(record->id);
      return true;
    });
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  RecordPages pages_{1};
  RecordIndex index_;
};

TEST_F(RecordIndexTest, AnEmptyIndexTakesNothingAndFindsNothing) {
  EXPECT_EQ(index_.Find(0), nullptr);
  EXPECT_EQ(index_.bytes(), 0);
  index_.Prefetch(0);
  index_.PrefetchRecord(0, 1);
}

TEST_F(RecordIndexTest, FindsEachRecordAndNoOther) {
  std::vector<RowRecord*> records;
  for (RowId id = 0; id < kMany; ++id) records.push_back(Insert(2 * id));
  EXPECT_EQ(index_.size(), kMany);
  for (RowId id = 0; id < kMany; ++id) {
    ASSERT_EQ(index_.Find(2 * id), records[id]);
    ASSERT_EQ(index_.Find(2 * id + 1), nullptr);
  }
}

TEST_F(RecordIndexTest, FindsIdsThatLieFarApart) {
  for (const RowId id : {RowId{0}, RowId{1}, RowId{1} << 32, RowId{1} << 63, UINT64_MAX}) {
    RowRecord* const record = Insert(id);
    EXPECT_EQ(index_.Find(id), record);
  }
}

TEST_F(RecordIndexTest, TakesAtMost12BytesForARecordAnd64More) {
  for (RowId id = 0; id < kMany; ++id) {
    Insert(id);
    ASSERT_LE(index_.bytes(), 12 * index_.size() + 64);
  }
}

TEST_F(RecordIndexTest, MoreRecordsTakeNothingWhileThereIsRoom) {
  Insert(0);
  const uint64_t before = index_.bytes();
  uint64_t more = 0;
  while (index_.BytesFor(more + 1) == 0) ++more;
  EXPECT_GT(more, 0);
  for (RowId id = 1; id <= more; ++id) Insert(id);
  EXPECT_EQ(index_.bytes(), before);
  EXPECT_GT(index_.BytesFor(1), 0);
  Insert(more + 1);
  EXPECT_GT(index_.bytes(), before);
}

TEST_F(RecordIndexTest, RecordsThatAreLeftOutAreNotFound) {
  for (RowId id = 0; id < kMany; ++id) Insert(id);
  std::vector<RowId> expected;
  for (RowId id = 0; id < kMany; ++id) {
    if (id % 3 == 0) {
      expected.push_back(id);
    } else {
      index_.Erase({index_.Find(id)});
      ASSERT_EQ(index_.Find(id), nullptr);
    }
  }
  EXPECT_EQ(Ids(), expected);
  EXPECT_EQ(index_.size(), expected.size());
  for (RowId id = 0; id < kMany; ++id) ASSERT_EQ(index_.Find(id) != nullptr, id % 3 == 0);
}

TEST_F(RecordIndexTest, ManyRecordsAreErasedAtOnce) {
  for (RowId id = 0; id < kMany; ++id) Insert(id);
  for (const RowId every : {20, 2, 1}) {
    std::vector<RowRecord*> records;
    for (RowId id = 0; id < kMany; id += every) {
      RowRecord* const record = index_.Find(id);
      if (record != nullptr) records.push_back(record);
    }
    index_.Erase(records);
    for (RowId id = 0; id < kMany; ++id) {
      ASSERT_EQ(index_.Find(id) == nullptr, id % every == 0 || (every < 20 && id % 20 == 0));
    }
  }
  EXPECT_EQ(index_.size(), 0);
}

TEST_F(RecordIndexTest, GivesMemoryBackWhenMostRecordsAreErased) {
  for (RowId id = 0; id < kMany; ++id) Insert(id);
  for (RowId id = 100; id < kMany; ++id) {
    index_.Erase({index_.Find(id)});
    ASSERT_LE(index_.bytes(), 24 * index_.size() + 128);
  }
  for (RowId id = 0; id < 100; ++id) ASSERT_NE(index_.Find(id), nullptr);
}

// The slots are nearly full, so records lie far from where their searches begin, also around the
// end.
TEST_F(RecordIndexTest, RecordsThatComeAndGoAreFoundAsAMapFindsThem) {
  std::map<RowId, RowRecord*> expected;
  std::mt19937_64 generator(1);
  for (int i = 0; i < 200'000; ++i) {
    const RowId id = generator() % 40;
    const auto found = expected.find(id);
    if (found == expected.end()) {
      expected[id] = Insert(id);
    } else {
      index_.Erase({found->second});
      pages_.Free(found->second);
      expected.erase(found);
    }
    const RowId other = generator() % 40;
    const auto at = expected.find(other);
    ASSERT_EQ(index_.Find(other), at == expected.end() ? nullptr : at->second);
    ASSERT_EQ(index_.size(), expected.size());
  }
}

TEST_F(RecordIndexTest, FindsRecordsWhereTheyWereMoved) {
  for (RowId id = 0; id < 1000; ++id) Insert(id);
  RecordPages elsewhere(1);
  std::vector<RowRecord*> moved(1000);
  index_.Replace(
      [&](const RowRecord* record) { return moved[record->id] = elsewhere.Allocate(record->id); });
  for (RowId id = 0; id < 1000; ++id) ASSERT_EQ(index_.Find(id), moved[id]);
}

TEST_F(RecordIndexTest, AVisitEndsWhereItIsToldTo) {
  for (RowId id = 0; id < 100; ++id) Insert(id);
  int visits = 0;
  index_.ForEach([&](const RowRecord*) { return ++visits < 7; });
  EXPECT_EQ(visits, 7);
}

}  // namespace
}  // namespace sluice
