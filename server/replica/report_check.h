// Checks a replica's reports at the leader, which computes with them: that they have the sizes
// and the place that its commands ask for.

#ifndef SLUICE_SERVER_REPLICA_REPORT_CHECK_H_
#define SLUICE_SERVER_REPLICA_REPORT_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "server/replica/replica_commands.h"

namespace sluice {

// Externally synchronized.
class ReportCheck {
 public:
  // Of the replica of that stripe of so many.
  ReportCheck(uint32_t stripe, uint32_t stripes) : stripe_(stripe), stripes_(stripes) {}

  // The command is about to be sent.
  void Note(const ReplicaCommand& command);

  // OK, or BAD_ARGUMENT with what is wrong.
  absl::Status Take(const ReplicaReport& report);

 private:
  // How long the lists of a StripeReport are.
  struct Sizes {
    size_t squares = 0;
    size_t row_squares = 0;
    size_t updates = 0;
    size_t sample = 0;
    size_t digests = 0;
  };

  // What a SummarizeTensor asks for.
  struct Summary {
    uint64_t number = 0;
    StripedTensor tensor;
  };

  void NoteModel(const OpenModel& command);
  absl::Status Check(const HaveReport& report);
  absl::Status Check(const StripeReport& report);
  absl::Status Check(const LoadedReport& report);
  absl::Status Check(const SavedReport& report);
  absl::Status Check(const JournalReport& report);
  absl::Status Check(const SummaryReport& report);
  Sizes SizesOf(StepOrder::Kind kind) const;

  const uint32_t stripe_;
  const uint32_t stripes_;
  std::shared_ptr<const Layout> layout_;  // of the vector
  uint64_t size_ = 0;                     // of the vector
  uint64_t stripe_bytes_ = 0;
  bool scales_ = false;  // LAMB
  Sizes full_;
  // What the replica was told to do, and has not reported on.
  std::deque<StepOrder::Kind> orders_;
  bool loads_ = false;
  bool journals_ = false;
  Step latest_;   // by the commands that were sent
  Step durable_;  // by the latest report
  std::deque<Step> saves_;
  std::deque<Summary> summaries_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_REPORT_CHECK_H_
