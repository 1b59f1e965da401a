#include "worker/data/idx_reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kDimensionBytes = 4;

// A file as a stream of bytes: gzip members are inflated, anything else passes through.
class InflatingFile {
 public:
  explicit InflatingFile(std::string path) : path_(std::move(path)) {}
  InflatingFile(const InflatingFile&) = delete;
  InflatingFile& operator=(const InflatingFile&) = delete;
  ~InflatingFile() { inflateEnd(&stream_); }

  // Call once, before Read().
  absl::Status Open();

  // Fills `out`, and fails unless it can; fewer bytes come only from the end of the file.
  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  absl::Status Refill();
  bool StartsLikeGzip() const;
  size_t Copy(absl::Span<uint8_t> out);
  absl::StatusOr<size_t> Inflate(absl::Span<uint8_t> out);
  // The offset of the next byte to consume, in the file itself.
  uint64_t Offset() const { return read_ - stream_.avail_in; }

  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::array<uint8_t, 1 << 16> input_;
  z_stream stream_ = {};  // its next_in and avail_in serve plain files too
  uint64_t read_ = 0;
  bool gzip_ = false;
  bool inside_member_ = false;
};

absl::Status InflatingFile::Open() {
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (file_ == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot be opened"));
  }
  absl::Status filled = Refill();
  if (!filled.ok()) return filled;
  gzip_ = StartsLikeGzip();
  inside_member_ = gzip_;
  // 16 asks for the gzip format with its checksum, MAX_WBITS for its largest window.
  if (gzip_ && inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) {
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": no memory left to inflate it"));
  }
  return absl::OkStatus();
}

absl::Status InflatingFile::Refill() {
  const size_t size = std::fread(input_.data(), 1, input_.size(), file_.get());
  if (std::ferror(file_.get())) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": reading failed at byte ", read_));
  }
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(size);
  read_ += size;
  return absl::OkStatus();
}

// Also true for a gzip file that was cut after its first byte: no IDX file begins with that byte.
bool InflatingFile::StartsLikeGzip() const {
  return stream_.avail_in >= 1 && input_[0] == 0x1f && (stream_.avail_in == 1 || input_[1] == 0x8b);
}

absl::StatusOr<size_t> InflatingFile::Read(absl::Span<uint8_t> out) {
  size_t filled = 0;
  while (filled < out.size()) {
    if (stream_.avail_in == 0) {
      absl::Status refilled = Refill();
      if (!refilled.ok()) return refilled;
    }
    if (stream_.avail_in == 0 && inside_member_) {
      return absl::DataLossError(absl::StrCat(
          path_, ": the file ends at compressed byte ", Offset(),
          ", expected the rest of its gzip stream; it is truncated: copy or install it again"));
    }
    if (stream_.avail_in == 0) break;
    const absl::Span<uint8_t> rest = out.subspan(filled);
    absl::StatusOr<size_t> size = gzip_ ? Inflate(rest) : Copy(rest);
    if (!size.ok()) return size;
    filled += *size;
  }
  return filled;
}

size_t InflatingFile::Copy(absl::Span<uint8_t> out) {
  const size_t size = std::min<size_t>(out.size(), stream_.avail_in);
  std::memcpy(out.data(), stream_.next_in, size);
  stream_.next_in += size;
  stream_.avail_in -= static_cast<uInt>(size);
  return size;
}

absl::StatusOr<size_t> InflatingFile::Inflate(absl::Span<uint8_t> out) {
  inside_member_ = true;
  stream_.next_out = out.data();
  stream_.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream_, Z_NO_FLUSH);
  if (result != Z_OK && result != Z_STREAM_END) {
    return absl::DataLossError(
        absl::StrCat(path_, ": expected valid gzip, found an error at compressed byte ", Offset(),
                     ": ", stream_.msg == nullptr ? zError(result) : stream_.msg,
                     "; the file is corrupt: copy or install it again"));
  }
  const size_t size = out.size() - stream_.avail_out;
  if (result == Z_STREAM_END) {
    // What follows must be another member: bytes of any other kind fail as its header.
    inside_member_ = false;
    inflateReset(&stream_);
  }
  return size;
}

// Reads to the end of the file, but no more than `limit` bytes. Grows as they arrive: a header that
// lies about its file costs no memory.
absl::StatusOr<std::vector<uint8_t>> ReadAtMost(InflatingFile& file, uint64_t limit) {
  constexpr uint64_t kFirstGrowth = 1 << 16;
  std::vector<uint8_t> data;
  while (data.size() < limit) {
    const size_t start = data.size();
    data.resize(std::min(limit, std::max(kFirstGrowth, uint64_t{2} * start)));
    const absl::Span<uint8_t> grown = absl::MakeSpan(data).subspan(start);
    const absl::StatusOr<size_t> size = file.Read(grown);
    if (!size.ok()) return size.status();
    if (*size == grown.size()) continue;
    data.resize(start + *size);
    break;
  }
  return data;
}

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

absl::StatusOr<IdxArray> ParseIdx(absl::Span<const uint8_t> bytes, absl::string_view name,
                                  int expected_rank) {
  const absl::Status rank = CheckRank(name, expected_rank);
  if (!rank.ok()) return rank;
  absl::StatusOr<Header> header = ParseHeader(bytes, name, expected_rank);
  if (!header.ok()) return header.status();
  const absl::Span<const uint8_t> data = bytes.subspan(header->begin);
  const absl::Status size = CheckDataSize(*header, data.size(), name);
  if (!size.ok()) return size;
  return IdxArray{std::move(header->dims), {data.begin(), data.end()}};
}

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
