// Reads values from JSON texts.

#ifndef SLUICE_TESTS_TESTING_JSON_H_
#define SLUICE_TESTS_TESTING_JSON_H_

#include <string>

namespace sluice {

// The value at a path such as "pushes.received" or "workers.0.host", as text; "absent" if there is
// none. For a list or an object, the text is its size: "[3]" or "{3}".
std::string JsonAt(const std::string& json, const std::string& path);
// The number at such a path; NaN if there is none.
double JsonNumberAt(const std::string& json, const std::string& path);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_JSON_H_
