#include "server/web/history/history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"

namespace sluice {
namespace {

// The first line of a file: it changes with the columns, the lanes and the rings.
constexpr absl::string_view kMagic = "sluice history 9\n";

// Adds `value` to the mean of `*count` values; NaN is no value.
template <typename Number>
void AddToMean(Number value, Number* mean, uint32_t* count) {
  if (std::isnan(value)) return;
  ++*count;
  *mean = *count == 1 ? value : *mean + (value - *mean) / static_cast<Number>(*count);
}

// ---- The file: numbers and texts, one after the other ----

void Put(uint64_t number, std::string* to) { absl::StrAppend(to, LittleEndian64(number)); }

void Put(double number, std::string* to) {
  uint64_t bits = 0;
  memcpy(&bits, &number, sizeof(bits));
  Put(bits, to);
}

void Put(const std::string& text, std::string* to) {
  Put(uint64_t{text.size()}, to);
  absl::StrAppend(to, text);
}

void Put(const HistorySample& row, std::string* to) {
  for (const double value : row.values) Put(value, to);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    Put(static_cast<double>(row.losses[lane]), to);
    to->push_back(static_cast<char>(row.activities[lane]));
  }
}

// Takes from the begin of a text. Once something is missing, all else is missing, too.
class Taker {
 public:
  explicit Taker(absl::string_view bytes) : rest_(bytes) {}

  absl::string_view Bytes(uint64_t size) {
    ok_ = ok_ && size <= rest_.size();
    const absl::string_view taken = rest_.substr(0, ok_ ? size : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  uint64_t Integer() {
    const absl::string_view bytes = Bytes(sizeof(uint64_t));
    return ok_ ? FromLittleEndian64(bytes) : 0;
  }
  double Real() {
    const uint64_t bits = Integer();
    double number = 0;
    memcpy(&number, &bits, sizeof(number));
    return number;
  }
  std::string Text() { return std::string(Bytes(Integer())); }
  HistorySample Row() {
    HistorySample row;
    for (double& value : row.values) value = Real();
    for (size_t lane = 0; lane < kLanes; ++lane) {
      row.losses[lane] = static_cast<float>(Real());
      const absl::string_view activity = Bytes(1);
      if (ok_) row.activities[lane] = static_cast<Activity>(activity[0]);
    }
    return row;
  }
  HistoryEvent Event() {
    HistoryEvent event;
    event.time = Real();
    event.step = Integer();
    event.kind = Text();
    event.text = Text();
    return event;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace

// ---- Rows ----

void History::BeginJob(const std::string& job_id) {
  if (job_id_ == job_id) return;
  *this = History();
  job_id_ = job_id;
}

void History::Merge(const HistorySample& sample, OpenRow* open) {
  for (size_t i = 0; i < kColumns.size(); ++i) {
    double& value = open->row.values[i];
    const double next = sample.values[i];
    if (kColumns[i].kind == ColumnKind::kGauge) {
      AddToMean(next, &value, &open->counts[i]);
    } else if (!std::isnan(next)) {
      const bool larger = std::isnan(value) || next > value;
      if (kColumns[i].kind == ColumnKind::kCounter || larger) value = next;
    }
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    AddToMean(sample.losses[lane], &open->row.losses[lane], &open->loss_counts[lane]);
    open->row.activities[lane] = sample.activities[lane];
  }
}

void History::AddToRing(const HistorySample& sample, size_t ring) {
  const auto number = static_cast<int64_t>(sample.values[kTime] / kRings[ring].period);
  OpenRow& open = open_[ring];
  if (open.number >= 0 && number > open.number) {
    rings_[ring].push_back(open.row);
    if (rings_[ring].size() > kRings[ring].rows) rings_[ring].pop_front();
    open = OpenRow();
  }
  open.number = std::max(open.number, number);
  Merge(sample, &open);
}

// Also times that are no number. What happened at `time` is of now, so it stays.
void History::ForgetSince(double time) {
  for (auto& ring : rings_) {
    const auto stays = [time](const HistorySample& row) { return row.values[kTime] < time; };
    const auto end = std::stable_partition(ring.begin(), ring.end(), stays);
    ring.erase(end, ring.end());
  }
  const auto happened = [time](const HistoryEvent& event) { return event.time <= time; };
  events_.erase(std::stable_partition(events_.begin(), events_.end(), happened), events_.end());
}

void History::Add(const HistorySample& sample) {
  if (std::exchange(from_file_, false)) ForgetSince(sample.values[kTime]);
  newest_ = sample;
  for (size_t ring = 0; ring < kRings.size(); ++ring) AddToRing(sample, ring);
}

std::vector<HistorySample> History::Rows() const {
  std::vector<HistorySample> rows;  // from the newest to the oldest
  double oldest = std::numeric_limits<double>::infinity();
  for (size_t ring = 0; ring < kRings.size(); ++ring) {
    if (ring == 0 && open_[0].number >= 0) rows.push_back(open_[0].row);
    for (auto row = rings_[ring].rbegin(); row != rings_[ring].rend(); ++row) {
      if (row->values[kTime] < oldest) rows.push_back(*row);
    }
    if (!rows.empty()) oldest = rows.back().values[kTime];
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

void History::Add(HistoryEvent event) {
  if (event.text.size() > kMostEventBytes) event.text.resize(kMostEventBytes);
  const bool repeats =
      !events_.empty() && event.kind == "checkpoint" && events_.back().kind == event.kind;
  if (repeats) events_.pop_back();
  events_.push_back(std::move(event));
  if (events_.size() > kMostEvents) events_.pop_front();
}

// ---- Lanes ----

size_t History::LaneOf(const std::string& worker, const absl::flat_hash_set<std::string>& alive) {
  const size_t own = static_cast<size_t>(absl::c_find(lanes_, worker) - lanes_.begin());
  if (own < kLanes) return own;
  size_t lane = static_cast<size_t>(absl::c_find(lanes_, "") - lanes_.begin());
  const auto is_gone = [&alive](const std::string& name) { return !alive.contains(name); };
  if (lane == kLanes) lane = static_cast<size_t>(absl::c_find_if(lanes_, is_gone) - lanes_.begin());
  if (lane == kLanes) return kLanes;
  Forget(lane);
  lanes_[lane] = worker;
  return lane;
}

void History::Forget(size_t lane) {
  const auto forget = [lane](HistorySample& row) {
    row.losses[lane] = std::numeric_limits<float>::quiet_NaN();
    row.activities[lane] = Activity::kNone;
  };
  for (auto& ring : rings_) {
    for (HistorySample& row : ring) forget(row);
  }
  for (OpenRow& open : open_) {
    forget(open.row);
    open.loss_counts[lane] = 0;
  }
}

// ---- The file ----

std::string History::Encode() const {
  std::string body;
  Put(job_id_, &body);
  for (const auto& ring : rings_) {
    Put(uint64_t{ring.size()}, &body);
    for (const HistorySample& row : ring) Put(row, &body);
  }
  for (const std::string& name : lanes_) Put(name, &body);
  Put(uint64_t{events_.size()}, &body);
  for (const HistoryEvent& event : events_) {
    Put(event.time, &body);
    Put(event.step, &body);
    Put(event.kind, &body);
    Put(event.text, &body);
  }
  Put(facts_.rules, &body);
  Put(facts_.verdict, &body);
  Put(facts_.learning_rate, &body);
  Put(facts_.loss, &body);
  return absl::StrCat(kMagic, LittleEndian64(Checksum(body)), body);
}

absl::Status History::Decode(absl::string_view bytes) {
  if (!absl::ConsumePrefix(&bytes, kMagic) || bytes.size() < sizeof(uint64_t)) {
    return absl::DataLossError("it is not a history of this version");
  }
  const uint64_t checksum = FromLittleEndian64(bytes.substr(0, sizeof(uint64_t)));
  bytes.remove_prefix(sizeof(uint64_t));
  if (checksum != Checksum(bytes)) return absl::DataLossError("its checksum is wrong");
  Taker taker(bytes);
  History read;
  read.job_id_ = taker.Text();
  for (size_t ring = 0; ring < kRings.size(); ++ring) {
    const uint64_t rows = taker.Integer();
    if (rows > kRings[ring].rows) return absl::DataLossError("it has too many rows");
    for (uint64_t row = 0; row < rows && taker.ok(); ++row) {
      read.rings_[ring].push_back(taker.Row());
    }
  }
  for (std::string& name : read.lanes_) name = taker.Text();
  const uint64_t events = taker.Integer();
  if (events > kMostEvents) return absl::DataLossError("it has too many events");
  for (uint64_t i = 0; i < events && taker.ok(); ++i) read.events_.push_back(taker.Event());
  read.facts_.rules = taker.Text();
  read.facts_.verdict = taker.Text();
  read.facts_.learning_rate = taker.Real();
  read.facts_.loss = taker.Real();
  if (!taker.done()) return absl::DataLossError("it is incomplete");
  read.from_file_ = true;
  *this = std::move(read);
  return absl::OkStatus();
}

}  // namespace sluice
