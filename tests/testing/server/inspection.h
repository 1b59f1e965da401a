// Calls the Inspector and returns its answers as JSON.

#ifndef SLUICE_TESTS_TESTING_SERVER_INSPECTION_H_
#define SLUICE_TESTS_TESTING_SERVER_INSPECTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tests/testing/server/reflection_client.h"

namespace sluice {

// No answer is as large as this.
inline constexpr size_t kLargestAnswer = 64 << 10;

// The answer to a call that must succeed.
std::string Inspect(ReflectionClient& client, const std::string& method,
                    const std::string& request = "{}");

// "workers.3.host".
std::string PathOf(const std::string& list, int index, const std::string& field);

// The names in all pages of a list, in order.
std::vector<std::string> NamesInPages(ReflectionClient& client, const std::string& method,
                                      int page_size, const std::string& list,
                                      const std::string& field);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_INSPECTION_H_
