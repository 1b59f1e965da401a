// The calls of a client of sluice.h, which run on a thread of their own.

#ifndef SLUICE_WORKER_C_CLIENT_CALLS_H_
#define SLUICE_WORKER_C_CLIENT_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "worker/c/job.h"
#include "worker/c/sluice.h"
#include "worker/client/parameter_client.h"
#include "worker/client/row_pull.h"

namespace sluice {

// What a program names before it joins.
struct ClientModel {
  Layout layout;
  OptimizerConfig optimizer;
  absl::Span<float> parameters;
  sluice_buffer gradient;
  ParameterClient::Restore restore = nullptr;  // null unless has_one_buffer()
  ConstantMemory constants = {};               // of the layout's constants
  RunningMeans means = {};                     // all elements that may be running means
  ParameterClient::Model model = {};           // null functions: the server has it

  bool steps_itself() const { return PublishesGradients(optimizer.options); }
  bool has_one_buffer() const {
    return layout.size() > 0 && parameters.data() == gradient.floats.data();
  }
};

// Externally synchronized.
class ClientCalls {
 public:
  enum class Part { kNew, kJoined, kLeft };

  // `job` and `model` outlive this.
  ClientCalls(const Job& job, const ClientModel& model) : job_(job), model_(model) {}

  // See the functions of sluice.h with these names. Join() is the first; after Leave(), it may be
  // called again.
  absl::Status Join();
  absl::Status Push(RowGradients rows, uint32_t samples, absl::optional<float> loss);
  absl::Status PullRows(const RowIds& rows, absl::Span<float> to);
  void PrefetchRows(const RowIds& rows);
  absl::Status PullSlots();
  absl::Status Leave();
  absl::Status AwaitEnd();
  absl::Status Report(const Results& results);  // once, and only if observes()
  // Ends what is open. Tells the server why a worker that has joined has not left.
  void GiveUp(const std::string& why);

  Part part() const { return part_; }
  bool observes() const { return observer_ != nullptr; }
  bool ends() const { return ends_; }                        // AwaitEnd() was called
  ParameterClient* client() const { return client_.get(); }  // null before it has joined
  // Pulls rows: the worker's client, and after AwaitEnd() the observer's. Null before it has
  // joined, and when it has left.
  ParameterClient* row_client() const;
  const RoundReport& round() const { return round_; }  // of the latest push
  const PulledSlots& slots() const { return slots_; }  // until the next push
  sluice_status status() const;                        // of a worker that has joined

 private:
  absl::Status Join(SessionRole role, std::unique_ptr<ParameterClient>* client);
  void NoteComplete(const absl::Status& called, const ParameterClient& observer);

  const Job& job_;
  const ClientModel& model_;
  Part part_ = Part::kNew;
  std::shared_ptr<const void> taken_;  // until it has left: see WorkerContext::TakePart()
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<ParameterClient> observer_;  // from AwaitEnd() to Report()
  std::map<uint32_t, RowPull> prefetched_;     // by table
  RoundReport round_;
  PulledSlots slots_;
  absl::optional<Step> final_step_;  // after AwaitEnd()
  bool complete_ = true;             // the observer's parameters, and those in one buffer
  bool observed_ = false;            // the observer has pulled the parameters
  bool ends_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_C_CLIENT_CALLS_H_
