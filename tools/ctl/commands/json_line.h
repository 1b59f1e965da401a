// Prints JSON of files, whose names and contents may be anything.

#ifndef SLUICE_TOOLS_CTL_COMMANDS_JSON_LINE_H_
#define SLUICE_TOOLS_CTL_COMMANDS_JSON_LINE_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {

// In ASCII, so that no name moves the cursor. Bytes of names that are no UTF-8 become U+FFFD. An
// indent of -1 makes it one line.
template <typename AnyJson>
std::string LineOf(const AnyJson& json, int indent = -1) {
  return absl::StrCat(json.dump(indent, ' ', true, AnyJson::error_handler_t::replace), "\n");
}

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_JSON_LINE_H_
