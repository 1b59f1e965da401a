// How many connections a worker's pushes go through, found out while the job runs.
//
// One fills most links. Where the network holds each flow back (a cloud's limit, a path of high
// latency, a core that decrypts), several side by side are faster: so twice as many are tried for
// as long as that is worth it.

#ifndef SLUICE_WORKER_CONNECTION_CONNECTION_CHOOSER_H_
#define SLUICE_WORKER_CONNECTION_CONNECTION_CHOOSER_H_

#include "worker/connection/server_connection.h"

namespace sluice {

// Externally synchronized.
class ConnectionChooser {
 public:
  static constexpr int kTransfers = 3;        // of a trial; the first is not counted
  static constexpr double kWorthMore = 1.15;  // by which a trial's best must be faster

  // At most `most` connections, at least 1.
  explicit ConnectionChooser(int most) : most_(most) {}

  int most() const { return most_; }

  // How many the next push is to use.
  int count() const { return count_; }

  // A push that went through so many took that long. True if that settles the number; one that used
  // fewer than count(), since there were no more, settles it, too.
  bool NoteTransfer(int connections, const Transfer& transfer);

  // Whether it still wants to be told how long pushes take that are sent at once.
  bool measures() const { return !settled_; }

  // Bytes per second through count() connections, and through one; once settled.
  double rate() const { return chosen_rate_; }
  double rate_of_one() const { return rate_of_one_; }

 private:
  const int most_;
  int count_ = 1;
  bool settled_ = false;
  int noted_ = 0;    // transfers of this trial
  double best_ = 0;  // of them, in bytes per second
  int chosen_ = 1;
  double chosen_rate_ = 0;
  double rate_of_one_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_CONNECTION_CHOOSER_H_
