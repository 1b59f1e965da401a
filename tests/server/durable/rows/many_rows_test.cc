// A million rows: what is written and read of them at once does not grow.

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/reading/rows_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/rows/rows_writer.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr RowId kRows = 1'000'000;
constexpr uint64_t kMostMemory = 16 << 20;  // the file has 24 MB

// Makes its rows when they are asked for: row i has the element i.
class ManyRows final : public RowSnapshot {
 public:
  bool Holds(RowId /*id*/) const override { return true; }
  void Read(uint32_t, absl::Span<const RowId>, absl::Span<float>) const override {}
  void Find(uint32_t /*table*/, RowId /*id*/,
            absl::FunctionRef<void(const StoredRow&)> /*take*/) const override {}
  void ForEachRow(uint32_t, uint32_t bucket, Step,
                  absl::FunctionRef<void(const StoredRow&)> take) const override {
    for (RowId id = 0; id < kRows; ++id) {
      if (BucketOf(id) != bucket) continue;
      const float element = static_cast<float>(id);
      take({id, Step(1), 0, {&element, 1}});
    }
  }
  void ForEachRemoved(uint32_t, uint32_t, Step, absl::FunctionRef<void(RowId)>) const override {}
};

// The bytes that are allocated now.
uint64_t Allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Keeps the bytes in memory that was taken before, and notes what the writer takes.
class MeasuredFile final : public WritableFile, public ReadableFile {
 public:
  MeasuredFile() {
    bytes_.reserve(kRows * 28 + (1 << 20));
    before_ = Allocated();
  }

  absl::Status Append(absl::string_view bytes) override {
    peak_ = std::max(peak_, Allocated());
    bytes_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::Status Truncate(uint64_t) override { return absl::OkStatus(); }
  absl::Status Sync() override { return absl::OkStatus(); }
  uint64_t size() const override { return bytes_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> to) const override {
    peak_ = std::max(peak_, Allocated());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
    return absl::OkStatus();
  }

  uint64_t taken() const { return peak_ < before_ ? 0 : peak_ - before_; }

 private:
  std::string bytes_;
  uint64_t before_ = 0;
  mutable uint64_t peak_ = 0;
};

TEST(ManyRowsTest, AreWrittenAndReadBlockByBlock) {
  const RowsHeader header = {"job", Incarnation(1), Step(1), absl::nullopt, {}, {{"items", 1, {}}}};
  MeasuredFile file;
  const auto checksum = WriteRows(header, ManyRows(), file);
  ASSERT_THAT(checksum, IsOk());
  RowsReader reader(file);
  ASSERT_THAT(reader.ReadHeader(), IsOk());
  uint64_t wrong = 0;
  for (auto more = reader.Next(); more.ok() && *more; more = reader.Next()) {
    ForEachStored(reader.block(), 1, [&](const StoredRow& row) {
      if (row.elements[0] != static_cast<float>(row.id)) ++wrong;
    });
  }
  EXPECT_EQ(reader.counts().rows, kRows);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(reader.checksum(), *checksum);
  EXPECT_GE(file.size(), kRows * 24);
  EXPECT_LT(file.taken(), kMostMemory);
}

}  // namespace
}  // namespace sluice
