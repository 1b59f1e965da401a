// Callbacks collected under a lock, to be run once it is released.

#ifndef SLUICE_SERVER_COMPLETIONS_H_
#define SLUICE_SERVER_COMPLETIONS_H_

#include <functional>
#include <utility>
#include <vector>

namespace sluice {

// Lives on the stack of one call. Run() is called with no lock held, once.
class Completions {
 public:
  void Add(std::function<void()> completion) { pending_.push_back(std::move(completion)); }

  void Run() {
    for (const std::function<void()>& completion : pending_) completion();
    pending_.clear();
  }

 private:
  std::vector<std::function<void()>> pending_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_COMPLETIONS_H_
