// Which steps of the server's earlier lives are part of this one's history.
//
// A server that was restored at step s goes on from its earlier life's step s: gradients that were
// computed on a step up to it are as good as before. What that life made after s is lost, and so
// are gradients computed on it.

#ifndef SLUICE_SERVER_STATE_INCARNATION_HISTORY_H_
#define SLUICE_SERVER_STATE_INCARNATION_HISTORY_H_

#include <algorithm>
#include <map>

#include "common/base/ids.h"

namespace sluice {

// Externally synchronized.
class IncarnationHistory {
 public:
  // Of a server without an earlier life.
  explicit IncarnationHistory(Incarnation current) : current_(current) {}

  // One that goes on at `restored` where `earlier` left off.
  IncarnationHistory(Incarnation current, const IncarnationHistory& earlier, Step restored)
      : current_(current), ancestors_(earlier.ancestors_) {
    AddAncestor(earlier.current_, restored);
    for (auto& ancestor : ancestors_) ancestor.second = std::min(ancestor.second, restored);
  }

  // When it is read from somewhere.
  void AddAncestor(Incarnation incarnation, Step last) { ancestors_[incarnation] = last; }

  Incarnation current() const { return current_; }

  // The last step of each earlier life that is part of this history.
  const std::map<Incarnation, Step>& ancestors() const { return ancestors_; }

  // Whether that step of that life is part of this history, or may yet be.
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
