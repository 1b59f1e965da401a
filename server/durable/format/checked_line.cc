#include "server/durable/format/checked_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/encoding/checksum.h"

namespace sluice {
namespace {

constexpr uint64_t kLongest = 256;

}  // namespace

std::string CheckedLine(const std::string& text) {
  return absl::StrCat(text, " ", Checksum(text), "\n");
}

absl::optional<std::string> ReadCheckedLine(FileSystem& files, const std::string& path) {
  const auto file = files.Open(path);
  if (!file.ok()) return absl::nullopt;
  std::string line(std::min((*file)->size(), kLongest), '\0');
  if (!(*file)->Read(0, absl::MakeSpan(line)).ok()) return absl::nullopt;
  const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \n"));
  uint64_t checksum = 0;
  const bool whole =
      words.size() > 1 && absl::SimpleAtoi(words[1], &checksum) && checksum == Checksum(words[0]);
  return whole ? absl::make_optional(words[0]) : absl::nullopt;
}

}  // namespace sluice
