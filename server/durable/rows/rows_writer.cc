#include "server/durable/rows/rows_writer.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/base/little_endian.h"
#include "common/checkpoint/reading/rows_format.h"
#include "common/encoding/checksum.h"

namespace sluice {
namespace {

// Writes the parts of a file, each with its checksum. After an error it writes nothing more.
class PartWriter {
 public:
  explicit PartWriter(WritableFile& file) : file_(file) {}

  void WritePart(std::string bytes) {
    const std::string checksum = LittleEndian64(Checksum(bytes));
    sums_.Add(checksum);
    Append(std::move(bytes), checksum);
  }

  // Returns the file's checksum.
  absl::StatusOr<uint64_t> WriteEnd(std::string bytes) {
    sums_.Add(bytes);
    const uint64_t checksum = sums_.Get();
    Append(std::move(bytes), LittleEndian64(checksum));
    if (!status_.ok()) return status_;
    return checksum;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Append(std::string bytes, const std::string& checksum) {
    bytes += checksum;
    if (status_.ok()) status_ = file_.Append(bytes);
  }

  WritableFile& file_;
  Checksummer sums_;  // of the checksums
  absl::Status status_;
};

// Collects the rows of one bucket after the other in blocks.
class BlockWriter {
 public:
  explicit BlockWriter(PartWriter& parts) : parts_(parts) {}

  void Begin(uint32_t table, uint32_t bucket, uint64_t row_elements) {
    block_.table = table;
    block_.bucket = bucket;
    row_elements_ = row_elements;
  }

  void Add(const StoredRow& row) {
    const uint64_t elements = row.touches > 0 ? 0 : row_elements_;
    CHECK_EQ(row.elements.size(), elements);
    MakeRoom(sizeof(RowId) + sizeof(uint64_t) + sizeof(uint32_t) + elements * sizeof(float));
    block_.ids.push_back(row.id);
    block_.touched.push_back(row.touched.value());
    block_.touches.push_back(row.touches);
    block_.elements.insert(block_.elements.end(), row.elements.begin(), row.elements.end());
    ++(row.touches > 0 ? counts_.waiting : counts_.rows);
  }

  void AddRemoved(RowId id) {
    MakeRoom(sizeof(RowId));
    block_.removed.push_back(id);
    ++counts_.removed;
  }

  // Writes what is left of the bucket.
  void Flush() {
    if (block_.empty()) return;
    parts_.WritePart(EncodeRowsBlock(block_));
    block_.Clear();
    bytes_ = 0;
    ++counts_.blocks;
  }

  const RowsCounts& counts() const { return counts_; }

 private:
  void MakeRoom(uint64_t bytes) {
    const bool full = block_.ids.size() + block_.removed.size() == kMostBlockIds ||
                      bytes_ + bytes > kMostBlockBytes;
    if (full) Flush();
    bytes_ += bytes;
  }

  PartWriter& parts_;
  RowsBlock block_;
  uint64_t row_elements_ = 0;
  uint64_t bytes_ = 0;  // of the block, without its head
  RowsCounts counts_;
};

}  // namespace

absl::StatusOr<uint64_t> WriteRows(const RowsHeader& header, const RowSnapshot& rows,
                                   WritableFile& file) {
  PartWriter parts(file);
  parts.WritePart(EncodeRowsPrefix(EncodeRowsHeader(header)));
  BlockWriter blocks(parts);
  const Step after = header.base.value_or(Step());  // gradients make rows, so from step 1 on
  for (uint32_t table = 0; table < header.tables.size(); ++table) {
    for (uint32_t bucket = header.place.stripe; bucket < kRowBuckets;
         bucket += header.place.stripes) {
      blocks.Begin(table, bucket, header.tables[table].elements());
      rows.ForEachRow(table, bucket, after, [&](const StoredRow& row) { blocks.Add(row); });
      if (header.base.has_value()) {
        rows.ForEachRemoved(table, bucket, after, [&](RowId id) { blocks.AddRemoved(id); });
      }
      blocks.Flush();
      if (!parts.status().ok()) return parts.status();
    }
  }
  return parts.WriteEnd(EncodeRowsEnd(blocks.counts()));
}

}  // namespace sluice
