// The error for a field of a message that has a value that is not allowed.

#ifndef SLUICE_COMMON_WIRE_FIELD_H_
#define SLUICE_COMMON_WIRE_FIELD_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"

namespace sluice {

// Returns BAD_ARGUMENT: "field FIELD is FOUND, expected EXPECTED".
inline absl::Status BadField(absl::string_view field, absl::string_view found,
                             absl::string_view expected) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("field ", field, " is ", found, ", expected ", expected));
}

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_FIELD_H_
