// The interface that a module on a server has for a trainer. On the server the module implements it
// (worker/torch/remote_module), at the trainer the wire does (ModuleLink).

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_SESSION_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "worker/client/round_report.h"
#include "worker/connection/module/plain_tensor.h"

namespace sluice {

// A trainer's place among the workers of its job.
struct ModulePlace {
  uint32_t index = 0;
  uint32_t workers = 1;  // that the job was launched with
  uint64_t pushes_before = 0;
};

struct ForwardCall {
  uint64_t call = 0;      // the number that the backward which belongs to it has
  bool training = false;  // the module is in training mode
  bool keep = false;      // a backward will follow
  std::vector<PlainTensor> inputs;
};

// What a method of the module gets, or returns: see ModuleValues in module_server.proto.
struct MethodValues {
  std::string plain;  // empty: the tensors are the values
  std::vector<PlainTensor> tensors;
};

struct MethodCall {
  std::string method;
  bool training = false;
  MethodValues arguments;
};

struct NamedTensors {
  std::vector<std::string> names;
  std::vector<PlainTensor> tensors;  // one for each name
};

// One trainer's session. module_server.proto describes the calls. Used by one thread at a time. An
// error of a call leaves the session usable, unless the call to the model server has ended. If the
// session is destroyed without Leave(), the job takes the trainer for lost.
class ModuleSession {
 public:
  // The most forwards whose backward may still come, and the most inputs of one.
  static constexpr size_t kMaxKept = 64;
  static constexpr size_t kMaxInputs = 64;

  virtual ~ModuleSession() = default;

  virtual ModulePlace place() const = 0;

  virtual absl::StatusOr<PlainTensor> Forward(ForwardCall call) = 0;

  // Returns a gradient for each input that requires one.
  virtual absl::StatusOr<std::vector<PlainTensor>> Backward(uint64_t call,
                                                            PlainTensor gradient) = 0;

  // Returns this trainer's gradient of the parameters with these names; of all if there are none.
  virtual absl::StatusOr<NamedTensors> Gradients(const std::vector<std::string>& parameters) = 0;

  virtual absl::StatusOr<MethodValues> Call(MethodCall call) = 0;

  virtual absl::Status DropGradient() = 0;

  // After a Backward() that has failed, a model server calls DropGradient() in its place.
  virtual absl::StatusOr<RoundReport> Step(uint32_t samples, absl::optional<float> loss) = 0;

  virtual absl::Status Leave(bool stay) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_SESSION_H_
