// What --version says of a program.

#ifndef SLUICE_COMMON_BASE_VERSION_H_
#define SLUICE_COMMON_BASE_VERSION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

// The version of Sluice stands here only. tools/package reads it for the packages.
inline constexpr char kVersion[] = "0.1.0";

// The version of something that a program is built with: {"gRPC", "1.51.1"}.
struct BuiltWith {
  std::string name;
  std::string version;
};

// A first line such as "sluice_train (Sluice) 0.1.0", then the commit and `parts`, one a line. The
// last line does not end with a newline.
std::string VersionText(absl::string_view program, const std::vector<BuiltWith>& parts);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_VERSION_H_
