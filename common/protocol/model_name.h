// The names of models, in a job that has several.

#ifndef SLUICE_COMMON_PROTOCOL_MODEL_NAME_H_
#define SLUICE_COMMON_PROTOCOL_MODEL_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// The key of a call's metadata that names the model which the call is for. Without it the call is
// for the model without a name.
inline constexpr char kModelKey[] = "sluice-model";
// The key, with any value, of a worker's call that joins: if the job has no such model, it begins.
inline constexpr char kBeginsModelKey[] = "sluice-begins-model";

// BAD_ARGUMENT unless the name has at most 64 letters, digits, dots, hyphens and underscores, of
// which the first is a letter or a digit. So it may be the name of a directory.
absl::Status CheckModelName(absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_MODEL_NAME_H_
