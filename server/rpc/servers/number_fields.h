// Checks the numbers in messages between servers. Each error is BAD_ARGUMENT and names the field.

#ifndef SLUICE_SERVER_RPC_SERVERS_NUMBER_FIELDS_H_
#define SLUICE_SERVER_RPC_SERVERS_NUMBER_FIELDS_H_

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/wire/field.h"

namespace sluice {

inline absl::Status CheckFinite(absl::string_view field, double number) {
  if (std::isfinite(number)) return absl::OkStatus();
  return BadField(field, absl::StrCat(number), "a finite number");
}

inline absl::Status CheckPositive(absl::string_view field, double number) {
  if (std::isfinite(number) && number > 0) return absl::OkStatus();
  return BadField(field, absl::StrCat(number), "a finite number above 0");
}

inline absl::Status CheckNotNegative(absl::string_view field, double number) {
  if (std::isfinite(number) && number >= 0) return absl::OkStatus();
  return BadField(field, absl::StrCat(number), "a finite number, 0 or more");
}

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_NUMBER_FIELDS_H_
