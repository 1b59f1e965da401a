#include "tests/testing/process/own_namespaces.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

bool WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

// As root of a user namespace, in which nobody else is known.
bool UnshareAsRootOfOurOwn(int kinds) {
  const std::string uid = absl::StrCat("0 ", geteuid(), " 1");
  const std::string gid = absl::StrCat("0 ", getegid(), " 1");
  if (unshare(CLONE_NEWUSER | kinds) != 0) return false;
  return WriteFile("/proc/self/setgroups", "deny") && WriteFile("/proc/self/uid_map", uid) &&
         WriteFile("/proc/self/gid_map", gid);
}

}  // namespace

absl::Status EnterOwnNamespaces(OwnNamespaces which) {
  const int network = which == OwnNamespaces::kMountsAndNetwork ? CLONE_NEWNET : 0;
  const int kinds = CLONE_NEWNS | network;
  const bool entered = (geteuid() == 0 && unshare(kinds) == 0) || UnshareAsRootOfOurOwn(kinds);
  if (entered && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "this system gives a test no namespaces of its own (unshare: ", std::strerror(errno),
      "); run it as root, in a container with CAP_SYS_ADMIN, or allow user namespaces"));
}

}  // namespace sluice
