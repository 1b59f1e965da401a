// What libFuzzer calls.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/silence.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  sluice::SilenceWarnings();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  sluice::Try({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
