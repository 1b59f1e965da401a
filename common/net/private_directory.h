// A directory that no other user of this machine may enter, for a job's unix socket.

#ifndef SLUICE_COMMON_NET_PRIVATE_DIRECTORY_H_
#define SLUICE_COMMON_NET_PRIVATE_DIRECTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Owns the directory: its destructor removes it and the files in it.
class PrivateDirectory {
 public:
  // Makes a new directory of mode 0700 under $XDG_RUNTIME_DIR, or under /tmp if that is unset or
  // not usable. UNAVAILABLE if the system refuses.
  static absl::StatusOr<std::unique_ptr<PrivateDirectory>> Create();
  ~PrivateDirectory();

  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_PRIVATE_DIRECTORY_H_
