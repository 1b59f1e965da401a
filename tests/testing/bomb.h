// A payload that is small and unpacks to 256 MiB.

#ifndef SLUICE_TESTS_TESTING_BOMB_H_
#define SLUICE_TESTS_TESTING_BOMB_H_

#include <string>

namespace sluice {

// Of a chunk that is encoded as "float32/zstd": a frame's length and the frame.
std::string Bomb();

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_BOMB_H_
