// A fuzz target: one file that defines Try().

#ifndef SLUICE_TESTS_FUZZ_TARGET_H_
#define SLUICE_TESTS_FUZZ_TARGET_H_

#include "absl/strings/string_view.h"

namespace sluice {

// Gives `bytes`, which come from anywhere, to a reader of Sluice's, and dies (CHECK) if that does
// not keep what it promises. The same bytes always do the same.
void Try(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_TARGET_H_
