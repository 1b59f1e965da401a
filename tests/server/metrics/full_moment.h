// A moment of a server that makes every metric have a value.

#ifndef SLUICE_TESTS_SERVER_METRICS_FULL_MOMENT_H_
#define SLUICE_TESTS_SERVER_METRICS_FULL_MOMENT_H_

#include "server/observe/job_moment.h"

namespace sluice {

inline void FillPushes(v1::PushCounters& pushes) {
  pushes.set_received(28);
  pushes.set_accepted(7);
  pushes.set_stale(6);
  pushes.set_skipped(5);
  pushes.set_duplicate(4);
  pushes.set_rejected(3);
  pushes.set_aborted(2);
  pushes.set_in_progress(1);
}

// Gradients of the staleness 0, 0, 2 and 100.
inline void FillStaleness(v1::Staleness& staleness) {
  staleness.set_gradients(4);
  staleness.set_sum(102);
  for (const auto& [number, count] : {std::pair(0, 2), std::pair(2, 1), std::pair(32, 1)}) {
    v1::StalenessCount& one = *staleness.add_histogram();
    one.set_staleness(number);
    one.set_count(count);
  }
}

// The step waits for the first server; the other one is away.
inline void FillServers(JobMoment& moment) {
  moment.state.mutable_awaited_server()->mutable_since()->set_seconds(3);
  moment.servers.resize(2);
  moment.servers[0].set_connected(true);
  v1::Server& away = moment.servers[1];
  away.set_index(1);
  away.set_bytes(100);
  away.set_wire_bytes_received(70);
  away.set_wire_bytes_sent(60);
  away.mutable_since()->set_seconds(8);
}

// A step has waited for two seconds for worker-1.
inline JobMoment FullMoment() {
  JobMoment moment;
  v1::ServerState& state = moment.state;
  state.set_job_id("2515a06c");
  state.set_incarnation(3);
  state.set_phase(v1::TRAINING);
  state.set_step(17);
  FillPushes(*state.mutable_pushes());
  FillStaleness(*state.mutable_staleness());
  state.set_expected_workers(4);
  state.mutable_worker_counts()->set_connected(2);
  state.mutable_worker_counts()->set_lost(1);
  state.mutable_worker_counts()->set_evicted(1);
  state.mutable_current()->mutable_waiting()->set_seconds(2);
  state.mutable_current()->set_missing(1);
  v1::AwaitedWorker& awaited = *state.mutable_current()->add_awaited();
  awaited.set_worker("worker-1");
  awaited.mutable_since_last_seen()->set_seconds(5);
  state.set_bytes_received(400);
  state.set_wire_bytes_received(130);
  v1::EncodedBytes& int8 = *state.add_received_by_encoding();
  int8.set_encoding("int8");
  int8.set_tensor_bytes(400);
  int8.set_wire_bytes(120);
  state.mutable_measurement()->set_step(12);
  auto& results = *state.mutable_measurement()->mutable_results();
  results["test accuracy"] = 0.75;
  results["test loss"] = 0.5;
  results["other"] = 9;
  state.mutable_in_flight()->set_bytes(300);
  state.mutable_in_flight()->set_limit(900);
  state.mutable_since_last_step()->set_seconds(4);
  state.mutable_since_initialized()->set_seconds(9);
  (*state.mutable_tasks())["step"] = 2;
  state.set_checkpoint_every(100);
  state.mutable_last_checkpoint()->mutable_since()->set_seconds(180);
  state.mutable_uptime()->set_seconds(200);
  FillServers(moment);
  moment.tables.resize(1);
  moment.tables[0].mutable_table()->set_name("items");
  return moment;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_METRICS_FULL_MOMENT_H_
