// Finds out while the job runs how many TCP connections a worker should use.
//
// One connection fills most links. Some networks limit each connection (a cloud's limit per flow, a
// path of high latency, one core that decrypts); there several are faster. So a worker doubles the
// number as long as that makes its pushes faster.

#ifndef SLUICE_WORKER_CONNECTION_CONNECTION_CHOOSER_H_
#define SLUICE_WORKER_CONNECTION_CONNECTION_CHOOSER_H_

#include "worker/connection/server_connection.h"

namespace sluice {

// Pure arithmetic on measured times. Externally synchronized.
class ConnectionChooser {
 public:
  static constexpr int kTransfers = 3;        // pushes of a trial; the first is not counted
  static constexpr double kWorthMore = 1.15;  // how much faster a trial's best push must be

  // At most `most` connections, at least 1.
  explicit ConnectionChooser(int most) : most_(most) {}

  int most() const { return most_; }

  // The number of connections for the next push.
  int count() const { return count_; }

  // Notes how long a push through `connections` took. Returns whether that settles the number. A
  // push that used fewer than count(), because no more could be opened, settles it, too.
  bool NoteTransfer(int connections, const Transfer& transfer);

  // Whether it still needs the times of pushes that are sent without pauses.
  bool measures() const { return !settled_; }

  // Bytes per second through count() connections, and through one; valid once settled.
  double rate() const { return chosen_rate_; }
  double rate_of_one() const { return rate_of_one_; }

 private:
  const int most_;
  int count_ = 1;
  bool settled_ = false;
  int noted_ = 0;    // pushes of this trial
  double best_ = 0;  // the fastest of them, in bytes per second
  int chosen_ = 1;
  double chosen_rate_ = 0;
  double rate_of_one_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_CONNECTION_CHOOSER_H_
