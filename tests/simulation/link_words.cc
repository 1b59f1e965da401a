#include "tests/simulation/link_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

std::string NameOf(const PushName& name) {
  return absl::StrCat("session ", name.session.value(), " sequence ", name.sequence.value(),
                      " attempt ", name.attempt);
}

std::string NameOf(const PullName& name) {
  return absl::StrCat(name.number, " of session ", name.session.value());
}

std::string IdOf(PushId push) { return absl::StrCat("id ", push.value()); }

struct InWordsOfLinks {
  std::string operator()(const OpenModel&) const { return "open the model"; }
  std::string operator()(const OpenSession& c) const {
    return absl::StrCat("open session ", c.session.value());
  }
  std::string operator()(const AdmitPush& c) const {
    return absl::StrCat("admit push ", IdOf(c.push), ": ", NameOf(c.name),
                        c.begins_sum ? ", the first of its step" : "");
  }
  std::string operator()(const DropPush& c) const {
    return absl::StrCat("drop push ", IdOf(c.push), ": ", NameOf(c.name));
  }
  std::string operator()(const TakeParameters& c) const {
    return absl::StrCat("take the parameters of ", IdOf(c.push));
  }
  std::string operator()(const AddPush& c) const {
    return absl::StrCat("add push ", IdOf(c.push), c.last ? ", the last" : "");
  }
  std::string operator()(const StepOrder&) const { return "carry out an order of the step"; }
  std::string operator()(const PublishStep&) const { return "publish the step"; }
  std::string operator()(const ReleasePull& c) const {
    return absl::StrCat("release pull ", NameOf(c.pull), " with step ", c.header.step.value());
  }
  std::string operator()(const DropPull& c) const {
    return absl::StrCat("drop the pulls up to ", NameOf(c.pull));
  }
  std::string operator()(const EndSession& c) const {
    const auto id = [](std::string* out, PushId push) { absl::StrAppend(out, push.value()); };
    return absl::StrCat("end session ", c.session.value(), c.keep.empty() ? "" : ", keep pushes ",
                        absl::StrJoin(c.keep, " ", id));
  }
  std::string operator()(const TakeCheckpoint& c) const {
    return absl::StrCat("take a checkpoint of step ", c.step.value());
  }
  std::string operator()(const LoadCheckpoint& c) const {
    return absl::StrCat("load the checkpoint of step ", c.source.step.value());
  }
  std::string operator()(const ReplayStep& c) const {
    return absl::StrCat("make step ", c.step.value(), " of the journal again");
  }
  std::string operator()(const BeginJournal&) const { return "begin the journal"; }
  std::string operator()(const KeepCheckpoints& c) const {
    return absl::StrCat("keep ", c.keep.size(), " checkpoints");
  }
  std::string operator()(const SummarizeTensor& c) const {
    return absl::StrCat("summarize tensor ", c.query.tensor, " for request ", c.number);
  }
  std::string operator()(const EndJob& c) const {
    return absl::StrCat("the job ends with ", c.exit_code);
  }
  std::string operator()(const HaveReport& r) const {
    const bool refused = !r.refused.ok();
    return absl::StrCat(refused ? "refuses" : "has", " its part of push ", IdOf(r.push),
                        refused ? ": " : "", r.refused.message());
  }
  std::string operator()(const StripeReport&) const { return "the order is carried out"; }
  std::string operator()(const LoadedReport& r) const {
    return r.failed.ok() ? "the checkpoint is loaded" : std::string(r.failed.message());
  }
  std::string operator()(const JournalReport& r) const {
    return absl::StrCat("step ", r.durable.value(), " is durable",
                        r.stopped.ok() ? "" : ", and its journal cannot be written");
  }
  std::string operator()(const SummaryReport& r) const {
    return absl::StrCat("the tensor of request ", r.number, " is summarized");
  }
  std::string operator()(const SavedReport& r) const {
    return absl::StrCat("step ", r.step.value(),
                        r.failed.ok() ? " is saved" : " is not saved: ", r.failed.message());
  }
};

}  // namespace

std::string Words(const ReplicaCommand& command) { return std::visit(InWordsOfLinks(), command); }

std::string Words(const ReplicaReport& report) { return std::visit(InWordsOfLinks(), report); }

}  // namespace sluice
