// Messages of a server, as tests of sluicectl write them.

#ifndef SLUICE_TESTS_TOOLS_CTL_MESSAGES_H_
#define SLUICE_TESTS_TOOLS_CTL_MESSAGES_H_

#include <google/protobuf/text_format.h>

#include <string>

#include "gtest/gtest.h"
#include "tools/ctl/render/worker_rows.h"

namespace sluice {

template <typename Message>
Message MessageOf(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// A server of three workers in the middle of step 110.
inline v1::ServerState TrainingState() {
  return MessageOf<v1::ServerState>(R"(
    job_id: "2515a06c" incarnation: 1 phase: TRAINING step: 110 workers: 3 observers: 1
    consistency { mode: SYNC reduction: MEAN order: RANK max_step_wait { seconds: 2 }
                  on_max_step_wait: EVICT }
    optimizer { sgd { learning_rate: 0.01 } } learning_rate: 0.01 schedule { kind: COSINE }
    current { accumulated: 1 required: 3 waiting { nanos: 2237000 } contributed: "worker-2" missing: 2
              awaited { worker: "worker-0" lag: 1 since_last_seen { nanos: 42450000 } }
              awaited { worker: "worker-1" lag: 3 since_last_seen { seconds: 90 } bytes_arrived: 2000 } }
    pushes { received: 333 accepted: 331 stale: 1 in_progress: 1 }
    staleness { mean: 0.5 max: 4 } tensors: 10 elements: 61706
    bytes_received: 81945568 bytes_sent: 81945568 wire_bytes_received: 257761 wire_bytes_sent: 0
    uptime { seconds: 15 nanos: 511911000 } mean_step_time { nanos: 60253000 }
    since_last_step { nanos: 42218000 }
    verdict { kind: SLOW text: "step 110 has waited 2 s for worker-0\033" }
    measurement { step: 90 reports: 2 results { key: "test loss" value: 0.5 }
                  results { key: "test accuracy\033" value: 0.87654321 } }
    last_checkpoint { step: 100 since { seconds: 3 } }
    warnings { kind: LOSS_RISES since: 90 text: "the loss rises\033[2J" }
    warnings { kind: DOES_NOT_LEARN since: 40 over: 60 text: "it stays" })");
}

inline v1::ListWorkersResponse FourWorkers() {
  return MessageOf<v1::ListWorkersResponse>(R"(
    workers { worker: "worker-0" presence: PRESENT host: "node1" pid: 7 step: 109 lag: 1 accepted: 110
              loss: 2.25 since_last_push { nanos: 29166000 } since_last_seen { nanos: 29358000 } }
    workers { worker: "worker-1" presence: LOST host: "node2" pid: 8 step: 107 lag: 3 accepted: 108 stale: 2
              loss: nan since_last_push { seconds: 90 } since_last_seen { seconds: 90 } }
    workers { worker: "worker-2" presence: PRESENT host: "node3" pid: 9 step: 110 accepted: 111
              contributed: true loss: 2.5 since_last_push { } since_last_seen { } }
    workers { worker: "x\033[31m" presence: LEFT host: "n\n" })");
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TOOLS_CTL_MESSAGES_H_
