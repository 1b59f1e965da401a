// The rules for every error that reports bad input.

#ifndef SLUICE_TESTS_FUZZ_REFUSAL_H_
#define SLUICE_TESTS_FUZZ_REFUSAL_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"

namespace sluice {

// Dies unless `text` can be read and sent: UTF-8 without control characters, of 1 to 2048 bytes,
// since a call's trailing metadata may hold no more than 8 KiB.
void CheckSentence(absl::string_view text);

// Dies unless `status` has one of these reasons, with the code that is documented for it, and its
// message is a sentence.
void CheckRefusal(const absl::Status& status, std::initializer_list<Reason> reasons);

// The same of errors that tell no reason.
void CheckRefusal(const absl::Status& status, std::initializer_list<absl::StatusCode> codes);

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_REFUSAL_H_
