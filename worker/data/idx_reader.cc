#include "worker/data/idx_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/data/inflating_file.h"

namespace sluice {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kDimensionBytes = 4;

struct Header {
  std::vector<uint32_t> dims;
  uint64_t begin = 0;      // offset of the first element
  uint64_t data_size = 0;  // product of dims
};

uint32_t ReadBigEndian(absl::Span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// Checks as much of the magic as the file has, so that a short file of another format gets the
// error for a wrong format.
absl::Status CheckMagic(absl::Span<const uint8_t> bytes, absl::string_view name,
                        int expected_rank) {
  const uint8_t expected[kMagicBytes] = {0, 0, 0x08, static_cast<uint8_t>(expected_rank)};
  static constexpr absl::string_view kMeaning[kMagicBytes] = {"zero", "zero", "unsigned bytes",
                                                              "the rank"};
  for (size_t i = 0; i < std::min(kMagicBytes, bytes.size()); ++i) {
    if (bytes[i] == expected[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: byte %d is 0x%02x, expected 0x%02x (%s); an IDX file of unsigned "
                        "bytes and rank %d begins with 00 00 08 %02x",
                        name, i, bytes[i], expected[i], kMeaning[i], expected_rank, expected[3]));
  }
  return absl::OkStatus();
}

absl::Status CheckDims(absl::string_view name, Header& header) {
  header.data_size = 1;
  for (size_t i = 0; i < header.dims.size(); ++i) {
    if (header.dims[i] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": dimension ", i, " at byte ",
                                                     kMagicBytes + i * kDimensionBytes,
                                                     " is 0, expected at least 1"));
    }
    if (header.dims[i] > kMaxIdxBytes / header.data_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": the dimensions at byte ", kMagicBytes, " are ", absl::StrJoin(header.dims, "x"),
          ", expected a product of at most ", kMaxIdxBytes));
    }
    header.data_size *= header.dims[i];
  }
  return absl::OkStatus();
}

// `bytes` may end where the header does.
absl::StatusOr<Header> ParseHeader(absl::Span<const uint8_t> bytes, absl::string_view name,
                                   int expected_rank) {
  const absl::Status magic = CheckMagic(bytes, name, expected_rank);
  if (!magic.ok()) return magic;
  Header header;
  header.begin = kMagicBytes + kDimensionBytes * expected_rank;
  if (bytes.size() < header.begin) {
    return absl::DataLossError(absl::StrCat(name, ": the file ends at byte ", bytes.size(),
                                            ", expected a header of ", header.begin,
                                            " bytes; it is truncated: copy or install it again"));
  }
  for (size_t at = kMagicBytes; at < header.begin; at += kDimensionBytes) {
    header.dims.push_back(ReadBigEndian(bytes.subspan(at, kDimensionBytes)));
  }
  const absl::Status dims = CheckDims(name, header);
  if (!dims.ok()) return dims;
  return header;
}

absl::Status CheckDataSize(const Header& header, uint64_t found, absl::string_view name) {
  const uint64_t end = header.begin + header.data_size;
  if (found > header.data_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": byte ", end, " follows the last element, expected the file of ",
                     absl::StrJoin(header.dims, "x"), " elements to end there"));
  }
  if (found == header.data_size) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name, ": the file ends at byte ", header.begin + found, ", expected ", end, " bytes for ",
      absl::StrJoin(header.dims, "x"), " elements; it is truncated: copy or install it again"));
}

absl::Status CheckRank(absl::string_view name, int expected_rank) {
  if (expected_rank >= 1 && expected_rank <= 255) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": a rank of ", expected_rank, " was asked for, expected 1 to 255"));
}

}  // namespace

absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int expected_rank) {
  const absl::Status rank = CheckRank(path, expected_rank);
  if (!rank.ok()) return rank;
  InflatingFile file(path);
  const absl::Status opened = file.Open();
  if (!opened.ok()) return opened;
  const auto head = ReadAtMost(file, kMagicBytes + kDimensionBytes * expected_rank);
  if (!head.ok()) return head.status();
  absl::StatusOr<Header> header = ParseHeader(*head, path, expected_rank);
  if (!header.ok()) return header.status();
  absl::StatusOr<std::vector<uint8_t>> data = ReadAtMost(file, header->data_size + 1);
  if (!data.ok()) return data.status();
  const absl::Status size = CheckDataSize(*header, data->size(), path);
  if (!size.ok()) return size;
  return IdxArray{std::move(header->dims), *std::move(data)};
}

}  // namespace sluice
