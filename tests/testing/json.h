// Reading JSON in tests.

#ifndef SLUICE_TESTS_TESTING_JSON_H_
#define SLUICE_TESTS_TESTING_JSON_H_

#include <string>

namespace sluice {

// The value at a path in a JSON text, "pushes.received" or "workers.0.host", as text; "absent" if
// there is none. A list or an object is told by its size, "[3]" or "{3}".
std::string JsonAt(const std::string& json, const std::string& path);
// The number at a path; NaN if there is none.
double JsonNumberAt(const std::string& json, const std::string& path);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_JSON_H_
