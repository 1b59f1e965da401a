// A link to a replica that writes down what it is told, in words.

#ifndef SLUICE_TESTS_TESTING_REPLICA_WRITTEN_LINK_H_
#define SLUICE_TESTS_TESTING_REPLICA_WRITTEN_LINK_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/replica/replica.h"
#include "server/replica/replica_link.h"

namespace sluice {

inline std::string Words(const PushName& name) {
  return absl::StrCat(name.session.value(), ":", name.sequence.value(), ":", name.attempt);
}
inline std::string Words(const PullName& name) {
  return absl::StrCat(name.session.value(), ":", name.number);
}
inline std::string Words(const OpenModel& command) {
  return absl::StrCat("open ", command.layout->size());
}
inline std::string Words(const OpenSession& /*command*/) { return ""; }
inline std::string Words(const AdmitPush& command) {
  return absl::StrCat("admit ", Words(command.name), command.measures_norm ? " and measure" : "");
}
inline std::string Words(const DropPush& command) {
  return absl::StrCat(command.push == PushId() ? "pass " : "drop ", Words(command.name));
}
inline std::string Words(const TakeParameters& command) {
  return absl::StrCat("take parameters ", command.step.value());
}
inline std::string Words(const AddPush& command) { return command.last ? "add last" : "add"; }
inline std::string Words(const StepOrder& /*command*/) { return "order"; }
inline std::string Words(const PublishStep& /*command*/) { return "publish"; }
inline std::string Words(const ReleasePull& command) {
  return absl::StrCat("release ", Words(command.pull), " at ", command.header.step.value());
}
inline std::string Words(const DropPull& command) {
  return absl::StrCat("drop pull ", Words(command.pull));
}
inline std::string Words(const EndSession& command) {
  return absl::StrCat("end session ", command.session.value(), ", keep ", command.keep.size());
}
inline std::string Words(const TakeCheckpoint& /*command*/) { return "take checkpoint"; }
inline std::string Words(const LoadCheckpoint& /*command*/) { return "load checkpoint"; }
inline std::string Words(const ReplayStep& command) {
  return absl::StrCat("replay ", command.step.value());
}
inline std::string Words(const BeginJournal& /*command*/) { return "begin journal"; }
inline std::string Words(const KeepCheckpoints& command) {
  return absl::StrCat("keep ", command.keep.size(), " checkpoints");
}
inline std::string Words(const SummarizeTensor& command) {
  return absl::StrCat("summarize ", command.number);
}
inline std::string Words(const EndJob& command) {
  return absl::StrCat("end job ", command.exit_code);
}

// Executes commands at once, and writes them down. Orders of a step are one line. Sessions that are
// opened are not written down.
class WrittenLink final : public ReplicaLink {
 public:
  explicit WrittenLink(Replica& replica) : replica_(replica) {}

  bool silent() const override { return false; }

  void Send(const ReplicaCommand& command) override {
    const std::string words = std::visit([](const auto& one) { return Words(one); }, command);
    const bool repeats = words == "order" && !log_.empty() && log_.back() == "order";
    if (!words.empty() && !repeats) log_.push_back(words);
    replica_.Execute(command);
  }

  // Those since the last call.
  std::vector<std::string> Take() { return std::exchange(log_, {}); }

 private:
  Replica& replica_;
  std::vector<std::string> log_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_REPLICA_WRITTEN_LINK_H_
