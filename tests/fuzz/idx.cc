// IDX files, plain and gzipped: refused, or read with the size and the bytes that they say; a
// gzipped file is read as the same file is that is not.
#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "worker/data/idx_reader.h"

namespace sluice {
namespace {

void Check(const absl::StatusOr<IdxArray>& array, absl::string_view path, int rank) {
  if (!array.ok()) {
    CheckRefusal(array.status(), {absl::StatusCode::kDataLoss, absl::StatusCode::kInvalidArgument});
    CHECK(absl::StartsWith(array.status().message(), path)) << array.status();
    return;
  }
  CHECK(array->dims.size() == static_cast<size_t>(rank));
  uint64_t elements = 1;
  for (const uint32_t dimension : array->dims) elements *= dimension;
  CHECK(elements > 0 && elements == array->data.size());
}

void CheckSame(const absl::StatusOr<IdxArray>& a, const absl::StatusOr<IdxArray>& b) {
  CHECK(a.status() == b.status()) << a.status() << " and " << b.status();
  if (a.ok()) CHECK(a->dims == b->dims && a->data == b->data);
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t how = input.Byte();
  const int rank = how % 2 == 0 ? 1 : 3;
  const size_t first_member = input.Byte();
  const absl::string_view content = input.Rest();

  const std::string path = FileOf(content);
  const auto read = ReadIdx(path, rank);
  Check(read, path, rank);
  const bool gzipped = LooksGzipped(content);
  if (read.ok() && !gzipped) {
    const absl::string_view data = content.substr(4 + 4 * static_cast<size_t>(rank));
    CHECK(std::equal(data.begin(), data.end(), read->data.begin(), read->data.end(),
                     [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
  }
  if (how / 2 % 2 == 0) return;
  // In two members, as `cat a.gz b.gz` makes them.
  FileOf(absl::StrCat(Gzip(content.substr(0, first_member)),
                      Gzip(content.substr(std::min(first_member, content.size())))));
  const auto unzipped = ReadIdx(path, rank);
  if (gzipped) {
    CHECK(!unzipped.ok());  // no IDX file begins as a gzipped one does
  } else {
    CheckSame(unzipped, read);
  }
}

}  // namespace sluice
