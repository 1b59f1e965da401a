#include "worker/connection/connection_chooser.h"

#include <algorithm>

namespace sluice {

bool ConnectionChooser::NoteTransfer(int connections, const Transfer& transfer) {
  if (settled_ || transfer.time <= absl::ZeroDuration()) return false;
  if (connections < count_) {
    count_ = chosen_;
    settled_ = true;
    return true;
  }
  if (noted_++ == 0) return false;
  best_ =
      std::max(best_, static_cast<double>(transfer.bytes) / absl::ToDoubleSeconds(transfer.time));
  if (noted_ < kTransfers) return false;
  const bool worth_it = count_ == 1 || best_ >= kWorthMore * chosen_rate_;
  if (worth_it) {
    chosen_ = count_;
    chosen_rate_ = best_;
    if (count_ == 1) rate_of_one_ = best_;
  }
  settled_ = !worth_it || 2 * count_ > most_;
  count_ = settled_ ? chosen_ : 2 * count_;
  noted_ = 0;
  best_ = 0;
  return settled_;
}

}  // namespace sluice
