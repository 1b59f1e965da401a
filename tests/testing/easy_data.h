// Writes a data set, as IDX files, that any model learns within some 20 steps.

#ifndef SLUICE_TESTS_TESTING_EASY_DATA_H_
#define SLUICE_TESTS_TESTING_EASY_DATA_H_

#include <cstdint>
#include <string>

namespace sluice {

// Writes both splits to `folder`, which it creates if needed, and returns `folder`. Image i has
// class c = i % 10: its rows 2c and 2c + 1 are white, all others are black.
std::string WriteEasyData(const std::string& folder, uint32_t training_images,
                          uint32_t test_images);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_EASY_DATA_H_
