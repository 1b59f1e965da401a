// Which steps of earlier incarnations led to the current parameters.
//
// A server that recovers at step s continues from step s of an earlier incarnation. Gradients that
// were computed on a step up to s are still valid. Later steps of that incarnation are lost, and
// gradients that were computed on them are stale. The gate asks Contains() for each push.

#ifndef SLUICE_SERVER_STATE_INCARNATION_HISTORY_H_
#define SLUICE_SERVER_STATE_INCARNATION_HISTORY_H_

#include <algorithm>
#include <map>

#include "common/base/ids.h"

namespace sluice {

// For each incarnation the step at which it began.
using IncarnationBegins = std::map<Incarnation, Step>;

// Externally synchronized.
class IncarnationHistory {
 public:
  // The history of a server that recovered nothing.
  explicit IncarnationHistory(Incarnation current) : current_(current) {}

  // The history of a server that recovered step `restored` of `earlier`.
  IncarnationHistory(Incarnation current, const IncarnationHistory& earlier, Step restored)
      : current_(current), ancestors_(earlier.ancestors_) {
    AddAncestor(earlier.current_, restored);
    for (auto& ancestor : ancestors_) ancestor.second = std::min(ancestor.second, restored);
  }

  // Adds an entry of ancestors(), which was read from a file.
  void AddAncestor(Incarnation incarnation, Step last) { ancestors_[incarnation] = last; }

  Incarnation current() const { return current_; }

  // For each earlier incarnation, its last step that is part of this history.
  const std::map<Incarnation, Step>& ancestors() const { return ancestors_; }

  // Whether that step is part of this history. Every step of the current incarnation is, even one
  // that the server has not reached.
  bool Contains(Incarnation incarnation, Step step) const {
    if (incarnation == current_) return true;
    const auto ancestor = ancestors_.find(incarnation);
    return ancestor != ancestors_.end() && step <= ancestor->second;
  }

 private:
  Incarnation current_;
  std::map<Incarnation, Step> ancestors_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_INCARNATION_HISTORY_H_
