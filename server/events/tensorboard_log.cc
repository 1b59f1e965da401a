#include "server/events/tensorboard_log.h"

#include <glog/logging.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "server/events/crc32c.h"
#include "server/observe/readings.h"
#include "sluice/own/tensorboard/event.pb.h"

namespace sluice {
namespace {

namespace tensorboard = own::tensorboard;

// Event files mask checksums, because that of a text with its own checksum says nothing.
uint32_t MaskedCrc(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

std::string LittleEndian32(uint32_t number) { return LittleEndian64(number).substr(0, 4); }

std::string RecordOf(const tensorboard::Event& event) {
  const std::string bytes = event.SerializeAsString();
  const std::string length = LittleEndian64(bytes.size());
  return absl::StrCat(length, LittleEndian32(MaskedCrc(length)), bytes,
                      LittleEndian32(MaskedCrc(bytes)));
}

tensorboard::Event EventAt(absl::Time time) {
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(time - absl::UnixEpoch()));
  return event;
}

bool Has(const JobNews& news, JobChange::Kind kind) {
  return std::any_of(news.changes.begin(), news.changes.end(),
                     [kind](const JobChange& change) { return change.kind == kind; });
}

std::map<std::string, float> Tagged(absl::string_view prefix, const Results& results) {
  std::map<std::string, float> scalars;
  for (const auto& [name, value] : results) {
    scalars[absl::StrCat(prefix, name)] = static_cast<float>(value);
  }
  return scalars;
}

}  // namespace

std::string EventFilePath(const std::string& directory, absl::Time time, absl::string_view host) {
  return absl::StrCat(directory, "/events.out.tfevents.", absl::ToUnixSeconds(time), ".", host);
}

absl::Status MakeEventDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot create the directory ", directory, ": ", strerror(errno)));
}

std::map<std::string, float> ScalarsOf(const JobMoment& moment, const JobNews& news) {
  std::map<std::string, float> scalars;
  const auto add = [&scalars](const char* tag, double value) {
    scalars[tag] = static_cast<float>(value);
  };
  if (news.loss.has_value()) add("loss", *news.loss);
  const double rate = moment.state.learning_rate();
  if (rate > 0) add("learning rate", rate);
  if (news.staleness.has_value()) add("staleness", *news.staleness);
  if (!news.rates.has_value()) return scalars;
  add("speed/steps per second", news.rates->steps);
  add("speed/pushes per second", news.rates->pushes);
  add("speed/bytes received per second", news.rates->bytes_received);
  add("speed/bytes sent per second", news.rates->bytes_sent);
  return scalars;
}

TensorBoardLog::TensorBoardLog(std::unique_ptr<RecordFile> file, absl::Time time)
    : file_(std::move(file)) {
  tensorboard::Event first = EventAt(time);
  first.set_file_version("brain.Event:2");
  file_->Add(RecordOf(first));
}

void TensorBoardLog::Look(const JobMoment& moment, const JobNews& news) {
  const v1::ServerState& state = moment.state;
  if (Has(news, JobChange::Kind::kMeasured)) {
    Write(moment.time, state.measurement().step(), Tagged("measured/", MeasuredResults(state)));
  }
  std::map<std::string, float> scalars;
  if (Has(news, JobChange::Kind::kStep)) scalars = ScalarsOf(moment, news);
  for (const auto& [name, value] : moment.results) {
    if (!results_.insert({name, value}).second) continue;
    scalars[absl::StrCat("result/", name)] = static_cast<float>(value);
  }
  Write(moment.time, state.step(), scalars);
}

void TensorBoardLog::Write(absl::Time time, uint64_t step,
                           const std::map<std::string, float>& scalars) {
  if (scalars.empty()) return;
  tensorboard::Event event = EventAt(time);
  event.set_step(static_cast<int64_t>(step));
  for (const auto& [tag, value] : scalars) {
    tensorboard::Summary::Value* const added = event.mutable_summary()->add_value();
    added->set_tag(tag);
    added->set_simple_value(value);
  }
  file_->Add(RecordOf(event));
}

void TensorBoardLog::End() {
  file_->Flush();
  const uint64_t lost = file_->TakeLost();
  LOG_IF(WARNING, lost > 0) << lost << " events for TensorBoard were lost: " << file_->name();
}

}  // namespace sluice
