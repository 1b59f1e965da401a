// Logs workers whose version of Sluice is not the server's.

#ifndef SLUICE_SERVER_RPC_VERSION_LOG_H_
#define SLUICE_SERVER_RPC_VERSION_LOG_H_

#include <glog/logging.h>

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/wire/versions.h"

namespace sluice {

// May be used by any thread.
class VersionLog {
 public:
  // The worker has joined with this version, and may have joined before. Logs another version than
  // this program's once for each worker. Returns what it has logged; empty: nothing.
  std::string Saw(const std::string& worker, const std::string& version) ABSL_LOCKS_EXCLUDED(mu_) {
    std::string text = OtherVersion(worker, version);
    if (text.empty() || !IsNews(worker, version)) return "";
    LOG(WARNING) << text;
    return text;
  }

 private:
  static constexpr size_t kMostWorkers = 1024;  // that are remembered

  bool IsNews(const std::string& worker, const std::string& version) {
    absl::MutexLock lock(&mu_);
    const auto known = told_.find(worker);
    if (known != told_.end() && known->second == version) return false;
    if (told_.size() == kMostWorkers) told_.clear();
    told_[worker] = version;
    return true;
  }

  absl::Mutex mu_;
  std::map<std::string, std::string> told_ ABSL_GUARDED_BY(mu_);  // worker -> its version
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_VERSION_LOG_H_
