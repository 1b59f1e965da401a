// Writes a data set, as IDX files, that any model learns within some 20 steps.

#ifndef SLUICE_TESTS_TESTING_EASY_DATA_H_
#define SLUICE_TESTS_TESTING_EASY_DATA_H_

#include <cstdint>
#include <string>

namespace sluice {

// Writes both splits into a folder, which is made if need be, and returns it. Image i is of class
// i % 10, whose rows 2 (i % 10) and the next are white, the others black.
std::string WriteEasyData(const std::string& folder, uint32_t training_images,
                          uint32_t test_images);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_EASY_DATA_H_
