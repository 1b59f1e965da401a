#include "server/durable/make_directory.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make the directory ", directory, ": ", error.message()));
}

}  // namespace sluice
