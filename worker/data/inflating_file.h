// Reads files that may be compressed by gzip.

#ifndef SLUICE_WORKER_DATA_INFLATING_FILE_H_
#define SLUICE_WORKER_DATA_INFLATING_FILE_H_

#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// A file as a stream of bytes: gzip members are inflated, anything else passes through. The content
// decides which, not the name: a file that begins with the two bytes of gzip's magic is compressed.
//
// An error names the file: DATA_LOSS if the gzip stream is truncated or corrupt, else the error of
// OpenInput() (common/base/input_file.h) or read(2). Externally synchronized.
class InflatingFile {
 public:
  explicit InflatingFile(std::string path) : path_(std::move(path)) {}
  InflatingFile(const InflatingFile&) = delete;
  InflatingFile& operator=(const InflatingFile&) = delete;
  ~InflatingFile() { inflateEnd(&stream_); }

  // Call once, before Read().
  absl::Status Open();

  // Fills `out`. Returns how many bytes that are: fewer only at the end of the file.
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

// Returns `plain` or, if there is no such file, `plain` with ".gz". NOT_FOUND if neither exists;
// the message ends with `advice`, which says what to do.
absl::StatusOr<std::string> FindEitherForm(const std::string& plain, absl::string_view advice);

// Reads to the end of the file, but no more than `limit` bytes. Memory grows as bytes arrive: a
// header that lies about its file costs none.
absl::StatusOr<std::vector<uint8_t>> ReadAtMost(InflatingFile& file, uint64_t limit);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_INFLATING_FILE_H_
