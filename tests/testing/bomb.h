// A decompression bomb: a small payload that unpacks to 256 MiB.

#ifndef SLUICE_TESTS_TESTING_BOMB_H_
#define SLUICE_TESTS_TESTING_BOMB_H_

#include <string>

namespace sluice {

// Returns the payload of a chunk that is encoded as "float32/zstd": the length of a frame, then the
// frame.
std::string Bomb();

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_BOMB_H_
