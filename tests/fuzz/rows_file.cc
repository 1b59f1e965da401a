// Files that are taken for files of rows: refused, or read as blocks that are written, and read
// again, as the same. Checksums keep what is changed at random out, so the target makes files whose
// checksums fit, too.
#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/checkpoint/reading/rows_format.h"
#include "common/checkpoint/reading/rows_header.h"
#include "common/checkpoint/reading/rows_reader.h"
#include "common/encoding/checksum.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"

namespace sluice {
namespace {

constexpr char kPath[] = "d/rows";

// Adds parts to a file, with the checksums that fit.
class SealedFile {
 public:
  void AddPart(const std::string& bytes) {
    const std::string checksum = LittleEndian64(Checksum(bytes));
    sums_ += checksum;
    bytes_ += bytes + checksum;
  }

  std::string End(const std::string& bytes) const {
    return bytes_ + bytes + LittleEndian64(Checksum(sums_ + bytes));
  }

 private:
  std::string bytes_;
  std::string sums_;
};

// Nearly always an id of the bucket.
RowId TakeId(Input& input, uint32_t bucket) {
  const uint8_t choice = input.Byte();
  return choice == 255 ? input.Number() : IdsInBucket(bucket % kRowBuckets, 4)[choice % 4];
}

// A block as the input says, of rows of so many elements.
RowsBlock TakeBlock(Input& input, const std::vector<RowsTable>& tables) {
  RowsBlock block;
  block.table = input.Byte() % 3;
  block.bucket = input.Byte();
  const size_t ids = input.Byte() % 5;
  const size_t removed = input.Byte() % 3;
  const size_t elements = block.table < tables.size() ? tables[block.table].elements() : 1;
  for (size_t i = 0; i < ids; ++i) {
    block.ids.push_back(TakeId(input, block.bucket));
    block.touched.push_back(input.Byte());
    block.touches.push_back(input.Byte() % 3);
    if (block.touches.back() == 0) block.elements.resize(block.elements.size() + elements, 0.5f);
  }
  for (size_t i = 0; i < removed; ++i) block.removed.push_back(TakeId(input, block.bucket));
  return block;
}

std::string TakeFile(Input& input) {
  const std::string description(input.Word());
  const auto header = DecodeRowsHeader(description);
  if (!header.ok()) CheckRefusal(header.status(), {absl::StatusCode::kDataLoss});
  SealedFile file;
  file.AddPart(EncodeRowsPrefix(description));
  RowsCounts counts;
  counts.blocks = input.Byte() % 4;
  for (uint64_t i = 0; i < counts.blocks; ++i) {
    const RowsBlock block =
        TakeBlock(input, header.ok() ? header->tables : std::vector<RowsTable>());
    const auto rows = std::count(block.touches.begin(), block.touches.end(), 0u);
    counts.rows += rows;
    counts.waiting += block.ids.size() - rows;
    counts.removed += block.removed.size();
    file.AddPart(EncodeRowsBlock(block));
  }
  return file.End(EncodeRowsEnd(counts));
}

void CheckBlock(const RowsBlock& block, const RowsHeader& header) {
  CHECK(block.table < header.tables.size());
  CHECK(block.bucket % header.place.stripes == header.place.stripe);
  CHECK(std::is_sorted(block.ids.begin(), block.ids.end(), std::less_equal<>()));
  uint64_t elements = 0;
  ForEachStored(block, header.tables[block.table].elements(), [&](const StoredRow& row) {
    CHECK(BucketOf(row.id) == block.bucket);
    CHECK(row.touched <= header.step);
    elements += row.elements.size();
  });
  CHECK(elements == block.elements.size());
}

// Reads a file. Returns what it has, written again; empty if it is refused.
std::string ReadAndWrite(const std::string& bytes) {
  FaultyFiles files;
  CHECK((*files.Create(kPath))->Append(bytes).ok());
  const auto opened = files.Open(kPath);
  RowsReader reader(**opened);
  absl::Status read = reader.ReadHeader();
  SealedFile again;
  if (read.ok()) again.AddPart(EncodeRowsPrefix(EncodeRowsHeader(reader.header())));
  while (read.ok()) {
    const auto more = reader.Next();
    read = more.status();
    if (!read.ok()) break;
    if (!*more) return again.End(EncodeRowsEnd(reader.counts()));
    CheckBlock(reader.block(), reader.header());
    again.AddPart(EncodeRowsBlock(reader.block()));
  }
  CheckRefusal(read, {absl::StatusCode::kDataLoss});
  return "";
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool made = input.Byte() % 4 != 0;
  const std::string again = ReadAndWrite(made ? TakeFile(input) : std::string(input.Rest()));
  if (!again.empty()) CHECK(ReadAndWrite(again) == again);
}

}  // namespace sluice
