#include "common/wire/messages.h"

#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/field.h"
#include "common/wire/versions.h"

namespace sluice {
namespace {

constexpr size_t kMaxHostName = 256;
constexpr size_t kMaxEncodingName = 64;
constexpr size_t kMaxVersion = 64;

}  // namespace

v1::JoinRequest ToProto(const JoinRequest& request) {
  v1::JoinRequest message;
  message.set_job_id(request.job_id);
  message.set_role(request.role == SessionRole::kWorker ? v1::WORKER : v1::OBSERVER);
  message.set_worker(request.worker);
  message.set_process_nonce(request.process_nonce.value());
  message.set_host(request.host);
  message.set_pid(request.pid);
  message.set_push_encoding(request.push_encoding);
  message.set_pull_encoding(request.pull_encoding);
  message.set_version(request.version);
  *message.mutable_layout() = ToProto(request.layout);
  *message.mutable_optimizer() = ToProto(request.optimizer);
  if (request.index.has_value()) message.set_index(*request.index);
  if (request.memory != nullptr) *message.mutable_memory() = ToProto(request.memory->name());
  return message;
}

absl::StatusOr<JoinRequest> FromProto(const v1::JoinRequest& message) {
  JoinRequest request;
  if (message.role() != v1::WORKER && message.role() != v1::OBSERVER) {
    return BadField("role", absl::StrCat(static_cast<int>(message.role())), "WORKER or OBSERVER");
  }
  if (message.worker().empty() || message.worker().size() > kMaxWorkerName) {
    return BadField("worker", absl::StrCat("a name of ", message.worker().size(), " bytes"),
                    absl::StrCat("1 to ", kMaxWorkerName));
  }
  if (message.process_nonce() == 0) {
    return BadField("process_nonce", "0", "a random number that is not 0");
  }
  const std::tuple<const char*, const std::string&, size_t> names[] = {
      {"host", message.host(), kMaxHostName},
      {"push_encoding", message.push_encoding(), kMaxEncodingName},
      {"pull_encoding", message.pull_encoding(), kMaxEncodingName},
      {"version", message.version(), kMaxVersion}};
  for (const auto& [field, name, most] : names) {
    if (name.size() <= most) continue;
    return BadField(field, absl::StrCat("a name of ", name.size(), " bytes"),
                    absl::StrCat("at most ", most));
  }
  if (message.more()) return BadField("more", "true", "false; parts go to JoinInParts");
  request.job_id = message.job_id();
  request.role = message.role() == v1::WORKER ? SessionRole::kWorker : SessionRole::kObserver;
  request.worker = message.worker();
  request.process_nonce = ProcessNonce(message.process_nonce());
  request.host = message.host();
  request.pid = message.pid();
  if (message.has_memory()) request.memory_name = FromProto(message.memory());
  request.push_encoding = message.push_encoding();
  request.pull_encoding = message.pull_encoding();
  request.version = message.version();
  if (message.has_index()) request.index = message.index();
  auto layout = FromProto(message.layout());
  if (!layout.ok()) return layout.status();
  request.layout = *std::move(layout);
  const auto optimizer = FromProto(message.optimizer());
  if (optimizer.ok()) request.optimizer = *optimizer;
  if (optimizer.ok() || request.role == SessionRole::kObserver) return request;
  return optimizer.status();
}

v1::SharedMemory ToProto(const SharedMemoryName& name) {
  v1::SharedMemory message;
  message.set_pid(name.pid);
  message.set_fd(name.fd);
  message.set_cookie(name.cookie);
  message.set_elements(name.elements);
  return message;
}

SharedMemoryName FromProto(const v1::SharedMemory& message) {
  return {message.pid(), message.fd(), message.cookie(), message.elements()};
}

v1::Welcome ToProto(const Welcome& welcome) {
  v1::Welcome message;
  message.set_session(welcome.session.value());
  message.set_job_id(welcome.job_id);
  message.set_incarnation(welcome.incarnation.value());
  message.set_step(welcome.step.value());
  message.set_initialized(welcome.initialized);
  message.set_last_sequence(welcome.last_sequence.value());
  *message.mutable_consistency() = ToProto(welcome.consistency);
  message.set_index(welcome.index);
  message.set_workers(welcome.workers);
  message.set_resumed(welcome.resumed);
  *message.mutable_lease() = ToProto(welcome.lease);
  message.set_pushes_before(welcome.pushes_before);
  message.set_lost_steps(welcome.lost_steps);
  message.set_late(welcome.late);
  *message.mutable_schedule() = ToProto(welcome.schedule);
  for (const std::string& server : welcome.servers) message.add_servers()->set_address(server);
  for (const auto& pushes : welcome.earlier_launches) {
    message.add_earlier_launches()->mutable_pushes()->Add(pushes.begin(), pushes.end());
  }
  if (welcome.constants.has_value()) message.set_constants(*welcome.constants);
  return message;
}

absl::StatusOr<Welcome> FromProto(const v1::Welcome& message) {
  Welcome welcome;
  welcome.session = SessionId(message.session());
  welcome.job_id = message.job_id();
  welcome.incarnation = Incarnation(message.incarnation());
  welcome.step = Step(message.step());
  welcome.initialized = message.initialized();
  welcome.takes_options = message.protocol() >= kTakesOptions;
  welcome.last_sequence = Sequence(message.last_sequence());
  const auto consistency = FromProto(message.consistency());
  if (!consistency.ok()) return consistency.status();
  welcome.consistency = *consistency;
  if (message.workers() == 0) return BadField("workers", "0", "at least 1");
  welcome.index = message.index();
  welcome.workers = message.workers();
  welcome.resumed = message.resumed();
  welcome.pushes_before = message.pushes_before();
  welcome.lost_steps = message.lost_steps();
  welcome.late = message.late();
  const auto schedule = FromProto(message.schedule());
  if (!schedule.ok()) return schedule.status();
  welcome.schedule = *schedule;
  for (const v1::HolderAddress& server : message.servers()) {
    welcome.servers.push_back(server.address());
  }
  for (const v1::EarlierLaunch& launch : message.earlier_launches()) {
    for (const uint64_t pushes : launch.pushes()) {
      if (pushes > kMostPushes) {
        return BadField("earlier_launches", absl::StrCat(pushes),
                        absl::StrCat("at most ", kMostPushes));
      }
    }
    welcome.earlier_launches.emplace_back(launch.pushes().begin(), launch.pushes().end());
  }
  if (message.has_constants()) welcome.constants = message.constants();
  welcome.lease = FromProto(message.lease());
  if (welcome.lease < absl::ZeroDuration()) {
    return BadField("lease", absl::FormatDuration(welcome.lease), "0 or more");
  }
  return welcome;
}

v1::JoinEvent ToProto(const JobEvent& event) {
  v1::JoinEvent message;
  switch (event.kind) {
    case JobEvent::Kind::kTrainingFinished:
      message.mutable_training_finished()->set_step(event.step.value());
      break;
    case JobEvent::Kind::kDraining:
      message.mutable_draining()->set_diverged(event.diverged);
      break;
    case JobEvent::Kind::kEvicted:
      message.mutable_evicted();
      break;
    case JobEvent::Kind::kPolicyChanged:
      message.mutable_policy_changed()->set_step(event.step.value());
      *message.mutable_policy_changed()->mutable_consistency() = ToProto(event.consistency);
      break;
    case JobEvent::Kind::kDeserted:
      break;  // workers never receive this event
  }
  return message;
}

absl::StatusOr<JobEvent> FromProto(const v1::JoinEvent& message) {
  JobEvent event;
  switch (message.event_case()) {
    case v1::JoinEvent::kTrainingFinished:
      event.kind = JobEvent::Kind::kTrainingFinished;
      event.step = Step(message.training_finished().step());
      return event;
    case v1::JoinEvent::kDraining:
      event.kind = JobEvent::Kind::kDraining;
      event.diverged = message.draining().diverged();
      return event;
    case v1::JoinEvent::kEvicted:
      event.kind = JobEvent::Kind::kEvicted;
      return event;
    case v1::JoinEvent::kPolicyChanged: {
      event.kind = JobEvent::Kind::kPolicyChanged;
      event.step = Step(message.policy_changed().step());
      const auto consistency = FromProto(message.policy_changed().consistency());
      if (!consistency.ok()) return consistency.status();
      event.consistency = *consistency;
      return event;
    }
    default:
      return BadField("event", absl::StrCat(static_cast<int>(message.event_case())),
                      "one that this worker knows; is the server newer than it?");
  }
}

v1::PullParamsRequest ToProto(const PullRequest& request) {
  v1::PullParamsRequest message;
  message.set_session(request.session.value());
  message.set_min_step(request.min_step.value());
  if (request.have_step.has_value()) message.set_have_step(request.have_step->value());
  if (request.after.has_value()) message.set_after(request.after->value());
  message.set_consistent(request.whole);
  message.set_number(request.number);
  return message;
}

PullRequest FromProto(const v1::PullParamsRequest& message) {
  PullRequest request;
  request.session = SessionId(message.session());
  request.min_step = Step(message.min_step());
  if (message.has_have_step()) request.have_step = Step(message.have_step());
  if (message.has_after()) request.after = Sequence(message.after());
  request.whole = message.consistent();
  request.number = message.number();
  return request;
}

v1::PullHeader ToProto(const PullHeader& header) {
  v1::PullHeader message;
  message.set_step(header.step.value());
  message.set_incarnation(header.incarnation.value());
  message.set_not_modified(header.not_modified);
  message.set_inconsistent(header.inconsistent);
  message.set_learning_rate(header.learning_rate);
  message.set_last(header.last);
  message.set_optimizer_steps(header.optimizer_steps);
  return message;
}

PullHeader FromProto(const v1::PullHeader& message) {
  PullHeader header;
  header.step = Step(message.step());
  header.incarnation = Incarnation(message.incarnation());
  header.not_modified = message.not_modified();
  header.inconsistent = message.inconsistent();
  header.learning_rate = message.learning_rate();
  header.last = message.last();
  header.optimizer_steps = message.optimizer_steps();
  return header;
}

}  // namespace sluice
