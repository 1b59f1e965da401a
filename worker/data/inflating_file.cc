#include "worker/data/inflating_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/input_file.h"

namespace sluice {

absl::Status InflatingFile::Open() {
  auto opened = OpenInput(path_);
  if (!opened.ok()) return opened.status();
  file_.reset(fdopen(opened->descriptor.get(), "rb"));
  if (file_ == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": no memory left"));
  opened->descriptor.Release();  // the stream closes it
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

// Also true for a gzip file that was cut after its first byte.
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

absl::StatusOr<std::string> FindEitherForm(const std::string& plain, absl::string_view advice) {
  const std::string gzip = plain + ".gz";
  for (const std::string& path : {plain, gzip}) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path;
  }
  return absl::NotFoundError(absl::StrCat("neither ", plain, " nor ", gzip, " exists; ", advice));
}

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

}  // namespace sluice
