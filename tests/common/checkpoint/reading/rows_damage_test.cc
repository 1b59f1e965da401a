// Damage of every kind of byte in a file of rows.

#include <memory>
#include <string>
#include <vector>

#include "common/base/little_endian.h"
#include "common/checkpoint/reading/row_chain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/format/directory_sync.h"
#include "server/durable/rows/rows_store.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr char kFull[] = "d/rows-000001-000000000001.sluice";
constexpr char kDifference[] = "d/rows-000001-000000000002.sluice";

// A full file and a difference, with rows, waiting ids and removed ids.
class RowsDamageTest : public ::testing::Test {
 protected:
  RowsDamageTest() {
    const std::vector<RowId> ids = IdsInBucket(3, 3);
    for (const RowId id : ids) rows_.Make(1, {0, id}, {1, 2, 3, 4, 5, 6});
    rows_.Make(1, {1, 77}, {1});
    Save(1);
    rows_.Remove(2, {0, ids[0]});
    rows_.Make(2, {0, ids[1]}, {6, 5, 4, 3, 2, 1});
    rows_.Wait(2, {1, 5}, 4);
    Save(2);
  }

  void Save(uint64_t step) {
    saved_ = *store_.Save({"job", Incarnation(1), Step(step), *layout_, slots_}, *rows_.Snapshot());
  }

  absl::Status Open() {
    return RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(2), {{{}, saved_}}}, *layout_,
                          true)
        .status();
  }

  void ExpectDamaged(const std::string& path, const std::string& what) {
    EXPECT_THAT(Open(), HasCode(absl::StatusCode::kDataLoss, HasSubstr(path))) << what;
  }

  FaultyFiles files_;
  DirectorySync sync_{files_, "d"};
  RowsStore store_{files_, "d", {}, sync_};
  const std::shared_ptr<const Layout> layout_ = LayoutWithTables();
  const std::vector<RowSlots> slots_ = SlotsOfTables();
  RowsInMemory rows_;
  std::vector<RowFile> saved_;
};

TEST_F(RowsDamageTest, WhicheverBitFlipsIsFound) {
  for (const char* path : {kFull, kDifference}) {
    const std::string bytes = files_.BytesOf(path);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      files_.BytesOf(path) = flipped;
      ExpectDamaged(path, absl::StrCat("bit ", bit));
    }
    files_.BytesOf(path) = bytes;
  }
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(RowsDamageTest, WhereverItIsCutIsFound) {
  for (const char* path : {kFull, kDifference}) {
    const std::string bytes = files_.BytesOf(path);
    for (size_t size = 0; size < bytes.size(); ++size) {
      files_.BytesOf(path) = bytes.substr(0, size);
      ExpectDamaged(path, absl::StrCat(size, " bytes"));
    }
    files_.BytesOf(path) = bytes;
  }
}

TEST_F(RowsDamageTest, BytesAfterTheEndAreFound) {
  files_.BytesOf(kFull) += "x";
  ExpectDamaged(kFull, "a byte more");
}

TEST_F(RowsDamageTest, ARowOfALaterStepIsFound) {
  rows_.Make(9, {1, 77}, {1});
  Save(3);
  EXPECT_THAT(RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(3), {{{}, saved_}}},
                             *layout_, true),
              HasCode(absl::StatusCode::kDataLoss,
                      HasSubstr("touched at step 9, after the file's step, 3")));
}

TEST_F(RowsDamageTest, ADescriptionThatIsTooLongIsNotRead) {
  std::string& bytes = files_.BytesOf(kFull);
  bytes.resize(20 << 20);
  bytes.replace(8, 8, LittleEndian64(18 << 20));
  EXPECT_THAT(Open(), HasCode(absl::StatusCode::kDataLoss,
                              HasSubstr("its description has 18874368 bytes, expected at most")));
}

TEST_F(RowsDamageTest, AMissingFileIsNamed) {
  ASSERT_THAT(files_.Remove(kFull), IsOk());
  ExpectDamaged(kFull, "missing");
  EXPECT_THAT(Open(), HasCode(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
}

TEST_F(RowsDamageTest, AnotherWholeFileIsFound) {
  files_.BytesOf(kDifference) = files_.BytesOf(kFull);
  ExpectDamaged(kDifference, "the other file");
}

TEST_F(RowsDamageTest, DamageAfterTheCheckIsFoundWhileRowsAreTaken) {
  const auto chain = RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(2), {{{}, saved_}}},
                                    *layout_, true);
  ASSERT_THAT(chain, IsOk());
  std::string& bytes = files_.BytesOf(kFull);
  bytes[bytes.size() - 60] = static_cast<char>(bytes[bytes.size() - 60] ^ 1);
  EXPECT_THAT(RowsOfSaved(**chain), HasCode(absl::StatusCode::kDataLoss, HasSubstr(kFull)));
}

}  // namespace
}  // namespace sluice
