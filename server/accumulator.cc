#include "server/accumulator.h"

namespace sluice {

void Accumulator::Add(const StagedVector& gradient) {
  if (count_ == 0) {
    gradient.CopyTo(sum_.span());
  } else {
    gradient.AddTo(sum_.span());
  }
  ++count_;
}

}  // namespace sluice
