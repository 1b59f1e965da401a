// Declares a CLI11 option for a value that may be absent.

#ifndef SLUICE_SERVER_PROGRAM_OPTIONAL_FLAG_H_
#define SLUICE_SERVER_PROGRAM_OPTIONAL_FLAG_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "absl/types/optional.h"

namespace sluice {

template <typename T>
CLI::Option* AddOptional(CLI::App& app, const std::string& name, absl::optional<T>& value,
                         const std::string& description) {
  const std::function<void(const T&)> set = [&value](const T& given) { value = given; };
  return app.add_option_function<T>(name, set, description);
}

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_OPTIONAL_FLAG_H_
