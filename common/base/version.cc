#include "common/base/version.h"

#include "absl/strings/str_cat.h"
#include "common/base/commit.h"

namespace sluice {

std::string VersionText(absl::string_view program, const std::vector<BuiltWith>& parts) {
  std::string text = absl::StrCat(program, " (Sluice) ", kVersion, "\ncommit ", kCommit);
  for (const BuiltWith& part : parts) absl::StrAppend(&text, "\n", part.name, " ", part.version);
  return text;
}

}  // namespace sluice
