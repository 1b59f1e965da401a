#include "server/tables/disk/disk_records.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/checksum.h"

namespace sluice {
namespace {

constexpr size_t kWrittenAtOnce = 256 << 10;

struct Head {
  uint64_t checksum = 0;  // of all that follows
  RowId id = 0;
  uint64_t touched = 0;
};

uint64_t ChecksumOf(absl::Span<const char> record) {
  constexpr size_t kBegin = sizeof(uint64_t);
  return Checksum({record.data() + kBegin, record.size() - kBegin});
}

void AppendRecord(const DiskRow& row, size_t elements, std::vector<char>* to) {
  const size_t begin = to->size();
  to->resize(begin + sizeof(Head) + elements * sizeof(float));
  const absl::Span<char> record = absl::MakeSpan(*to).subspan(begin);
  Head head = {0, row.id, row.touched};
  std::memcpy(record.data(), &head, sizeof(head));
  std::memcpy(record.data() + sizeof(head), row.elements, elements * sizeof(float));
  head.checksum = ChecksumOf(record);
  std::memcpy(record.data(), &head, sizeof(head));
}

}  // namespace

uint64_t DiskRecords::record_bytes() const { return sizeof(Head) + elements_ * sizeof(float); }

// Those that lie one after the other are written together.
absl::Status DiskRecords::Write(absl::Span<const DiskRow> rows) const {
  std::vector<char> bytes;
  uint64_t offset = 0;
  for (const DiskRow& row : rows) {
    if (row.offset != offset + bytes.size() || bytes.size() > kWrittenAtOnce) {
      const absl::Status written = file_->Write(offset, bytes);
      if (!written.ok()) return written;
      bytes.clear();
      offset = row.offset;
    }
    AppendRecord(row, elements_, &bytes);
  }
  return file_->Write(offset, bytes);
}

absl::Status DiskRecords::Read(uint64_t offset, RowId id, uint64_t touched,
                               absl::Span<float> to) const {
  std::vector<char> record(record_bytes());
  const absl::Status read = file_->Read(offset, absl::MakeSpan(record));
  if (!read.ok()) return read;
  Head head;
  std::memcpy(&head, record.data(), sizeof(head));
  if (head.checksum != ChecksumOf(record) || head.id != id || head.touched != touched) {
    return absl::DataLossError(
        absl::StrCat("row ", id, " of a table, of step ", touched, ", is damaged in --table-dir"));
  }
  std::memcpy(to.data(), record.data() + sizeof(head), to.size() * sizeof(float));
  return absl::OkStatus();
}

}  // namespace sluice
