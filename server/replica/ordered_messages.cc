#include "server/replica/ordered_messages.h"

namespace sluice {

bool OrderedReceiver::Take(uint64_t number) {
  if (number != taken_ + 1) return false;
  taken_ = number;
  return true;
}

}  // namespace sluice
