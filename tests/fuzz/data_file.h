// The input as a file of a data set, plain or gzipped.

#ifndef SLUICE_TESTS_FUZZ_DATA_FILE_H_
#define SLUICE_TESTS_FUZZ_DATA_FILE_H_

#include <glog/logging.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {

// A file that only this process sees, and that holds `bytes`; returns its path.
inline std::string FileOf(absl::string_view bytes) {
  static const int file = memfd_create("data", MFD_CLOEXEC);
  PCHECK(file >= 0);
  PCHECK(ftruncate(file, 0) == 0);
  PCHECK(pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return absl::StrCat("/proc/self/fd/", file);
}

// A gzip member that stands for `content`.
inline std::string Gzip(absl::string_view content) {
  z_stream stream = {};
  CHECK(deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 1, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string member(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(&member[0]);
  stream.avail_out = static_cast<uInt>(member.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  member.resize(stream.total_out);
  deflateEnd(&stream);
  return member;
}

inline bool LooksGzipped(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f"); }

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_DATA_FILE_H_
