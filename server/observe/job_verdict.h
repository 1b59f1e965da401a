// How a job of several models is: the verdict that stands in the state of the model without a name,
// since everything that shows a job shows that one.

#ifndef SLUICE_SERVER_OBSERVE_JOB_VERDICT_H_
#define SLUICE_SERVER_OBSERVE_JOB_VERDICT_H_

#include <functional>
#include <string>
#include <vector>

#include "server/durable/directory.h"
#include "server/shard/shard.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// A model with a name. `durable` may be null.
struct NamedShard {
  std::string name;
  Shard* shard;
  const DurableDirectory* durable;
};
// The models of the job that have names, in their order. They live as long as somebody may ask.
using NamedShards = std::function<std::vector<NamedShard>()>;

struct NamedState {
  std::string name;  // empty: the model without a name
  v1::ServerState state;
};

// The gravest verdict of the models that workers have joined; of those that have finished, or were
// told to end, only if all have. A model with a name is named. If no model with a name was ever
// joined, it is that of `unnamed`. Each state has its own verdict. Any thread may call these
// functions.
v1::Verdict VerdictOnJob(const v1::ServerState& unnamed, const std::vector<NamedState>& named);

// Puts it into `state`, that of the model without a name. `named` may be null.
void JudgeJob(const NamedShards& named, v1::ServerState* state);

}  // namespace sluice

#endif  // SLUICE_SERVER_OBSERVE_JOB_VERDICT_H_
