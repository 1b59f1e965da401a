#include "tools/ctl/top/top_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/ctl/render/status_text.h"

namespace sluice {
namespace {

constexpr size_t kLongestFilter = 64;

bool OfSameServer(const Sample& a, const Sample& b) {
  return a.state.job_id() == b.state.job_id() && a.state.incarnation() == b.state.incarnation();
}

// A counter's growth per second between two samples; 0 if it did not grow.
double Speed(uint64_t before, uint64_t now, absl::Duration time) {
  if (now <= before || time <= absl::ZeroDuration()) return 0;
  return static_cast<double>(now - before) / absl::ToDoubleSeconds(time);
}

bool Matches(const WorkerRow& row, const std::string& filter) {
  return absl::StrContains(row.worker.worker(), filter) ||
         absl::StrContains(row.worker.host(), filter);
}

}  // namespace

void TopView::Take(Sample sample) {
  trouble_.clear();
  earlier_ = std::exchange(now_, std::move(sample));
  if (earlier_.has_value() && !OfSameServer(*earlier_, *now_)) earlier_.reset();
}

// ---- Keys ----

bool TopView::Press(const TopKey& key) {
  using Kind = TopKey::Kind;
  if (editing_) {
    Edit(key);
    return true;
  }
  if (std::exchange(help_, false)) return true;  // any key closes the help
  switch (key.kind) {
    case Kind::kLetter:
      return PressLetter(key.letter);
    case Kind::kUp:
      first_ -= std::min<size_t>(first_, 1);
      break;
    case Kind::kDown:
      ++first_;
      break;
    case Kind::kPageUp:
      first_ -= std::min(first_, page_);
      break;
    case Kind::kPageDown:
      first_ += page_;
      break;
    case Kind::kHome:
      first_ = 0;
      break;
    case Kind::kEnd:
      first_ = now_.has_value() ? static_cast<size_t>(now_->workers.workers_size()) : 0;
      break;
    case Kind::kEscape:
      filter_.clear();
      break;
    case Kind::kEnter:
    case Kind::kErase:
      break;
  }
  return true;
}

bool TopView::PressLetter(char letter) {
  switch (letter) {
    case 'q':
      return false;
    case 'h':
    case '?':
      help_ = true;
      break;
    case 's':
    case '>':
      NextSort(1);
      break;
    case '<':
      NextSort(-1);
      break;
    case '/':
      editing_ = true;
      break;
    case 'a':
      all_ = !all_;
      break;
    default:
      break;
  }
  return true;
}

void TopView::NextSort(int by) {
  const auto count = static_cast<int>(SortNames().size());
  sort_ = static_cast<SortKey>((static_cast<int>(sort_) + by + count) % count);
  first_ = 0;
}

void TopView::Edit(const TopKey& key) {
  first_ = 0;
  if (key.kind == TopKey::Kind::kLetter && filter_.size() < kLongestFilter) {
    filter_ += key.letter;
  } else if (key.kind == TopKey::Kind::kErase && !filter_.empty()) {
    filter_.pop_back();
  } else if (key.kind == TopKey::Kind::kEnter) {
    editing_ = false;
  } else if (key.kind == TopKey::Kind::kEscape) {
    editing_ = false;
    filter_.clear();
  }
}

// ---- Lines ----

std::vector<TopLine> TopView::Render(int height, int width) {
  std::vector<TopLine> lines;
  if (help_) {
    lines = Help();
  } else {
    lines = Header();
    AppendTable(static_cast<size_t>(std::max(height, 0)), lines);
  }
  lines.resize(std::min(lines.size(), static_cast<size_t>(std::max(height, 0))));
  for (TopLine& line : lines) {
    line.text.resize(std::min(line.text.size(), static_cast<size_t>(std::max(width, 0))));
  }
  return lines;
}

std::string TopView::SpeedText() const {
  if (!earlier_.has_value()) return "speed    known with the next sample";
  const v1::ServerState& before = earlier_->state;
  const v1::ServerState& now = now_->state;
  const absl::Duration time = now_->at - earlier_->at;
  const auto bytes = [time](uint64_t from, uint64_t to) {
    return absl::StrCat(BytesText(static_cast<uint64_t>(Speed(from, to, time))), "/s");
  };
  // With several servers these are the first one's, and the bytes of tensors those of all.
  const auto sockets = [&](uint64_t from, uint64_t to) {
    return now.servers() > 1 ? "" : absl::StrCat(" (sockets ", bytes(from, to), ")");
  };
  return absl::StrCat("speed    ", RateText(Speed(before.step(), now.step(), time)), " steps/s, ",
                      RateText(Speed(before.pushes().accepted(), now.pushes().accepted(), time)),
                      " pushes/s, ",
                      RateText(Speed(before.pushes().stale(), now.pushes().stale(), time)),
                      " stale/s; in ", bytes(before.bytes_received(), now.bytes_received()),
                      sockets(before.wire_bytes_received(), now.wire_bytes_received()), ", out ",
                      bytes(before.bytes_sent(), now.bytes_sent()),
                      sockets(before.wire_bytes_sent(), now.wire_bytes_sent()));
}

std::vector<TopLine> TopView::Header() const {
  if (!now_.has_value()) {
    return {{absl::StrCat("waiting for ", Printable(address_)), TopStyle::kPlain},
            {Printable(trouble_), TopStyle::kStrong}};
  }
  const v1::ServerState& state = now_->state;
  const v1::StepState& step = state.current();
  std::string head = HeadLine(state, address_);
  head.pop_back();
  std::vector<TopLine> lines = {
      {head, TopStyle::kStrong},
      {absl::StrCat("verdict  ", VerdictText(state)),
       state.verdict().kind() == v1::Verdict::FINE ? TopStyle::kPlain : TopStyle::kStrong},
      {absl::StrCat("rules    ", RulesText(state.consistency()))},
      {SpeedText()},
      {absl::StrCat("workers  ", PresencesText(now_->workers), "; ",
                    CountText(state.observers(), "observer"))},
      {absl::StrCat("step     ", step.accumulated(), " of ", CountText(step.required(), "gradient"),
                    "; awaited: ", AwaitedText(state))}};
  for (const v1::TrainingWarning& warning : state.warnings()) {
    if (!warning.has_over()) {
      lines.push_back({absl::StrCat("WARNING  ", Printable(warning.text())), TopStyle::kStrong});
    }
  }
  if (!trouble_.empty()) {
    lines.push_back({absl::StrCat("OLD      ", Printable(trouble_)), TopStyle::kStrong});
  }
  return lines;
}

std::vector<TopLine> TopView::Help() const {
  return {
      {"Keys of sluicectl top", TopStyle::kTitle},
      {""},
      {"s or >       the next order of the rows; < the one before"},
      {"/            shows only workers whose name or host has what you type; Enter ends,"},
      {"             Esc shows all again"},
      {"a            shows also workers that have left or were evicted, or hides them"},
      {"arrows, PageUp, PageDown, Home, End   scroll"},
      {"h or ?       this help; any key closes it"},
      {"q, Ctrl-C    quits"},
      {""},
      {"RATE/s is accepted pushes per second. LAG is the server's step minus that of the latest"},
      {"gradient. THIS STEP: \"awaited\" workers hold others up, \"done\" ones have contributed."}};
}

std::vector<WorkerRow> TopView::Rows() const {
  std::vector<WorkerRow> rows;
  if (!now_.has_value()) return rows;
  rows = RowsOf(*now_, earlier_.has_value() ? &*earlier_ : nullptr);
  rows.erase(std::remove_if(rows.begin(), rows.end(),
                            [this](const WorkerRow& row) {
                              return (!all_ && !TakesPart(row.worker)) || !Matches(row, filter_);
                            }),
             rows.end());
  SortRows(sort_, rows);
  return rows;
}

// Appends the rows that fit below `lines`, and the footer as the last line.
void TopView::AppendTable(size_t height, std::vector<TopLine>& lines) {
  const std::vector<WorkerRow> rows = Rows();
  const size_t used = lines.size() + 2;  // and the titles and the footer
  page_ = height > used ? height - used : 1;
  first_ = std::min(first_, rows.size() - std::min(rows.size(), page_));
  const size_t end = std::min(rows.size(), first_ + page_);
  std::vector<std::vector<std::string>> cells;
  for (size_t i = first_; i < end; ++i) cells.push_back(WorkerCells(rows[i], true));
  std::vector<std::string> table =
      absl::StrSplit(TableText(WorkerColumns(true), cells), '\n', absl::SkipEmpty());
  for (size_t i = 0; i < table.size(); ++i) {
    lines.push_back({std::move(table[i]), i == 0 ? TopStyle::kTitle : TopStyle::kPlain});
  }
  while (lines.size() + 1 < height) lines.push_back({""});
  lines.resize(height == 0 ? 0 : std::min(lines.size(), height - 1));
  lines.push_back({Footer(end - first_, rows.size()), TopStyle::kTitle});
}

std::string TopView::Footer(size_t shown, size_t all) const {
  if (editing_) return absl::StrCat("name or host has: ", filter_, "_");
  const std::string range =
      shown == 0 ? "no worker"
                 : absl::StrCat("workers ", first_ + 1, "-", first_ + shown, " of ", all);
  return absl::StrCat(range, " by ", SortNames()[static_cast<size_t>(sort_)],
                      filter_.empty() ? "" : absl::StrCat(" with \"", filter_, "\""),
                      "   s order  / filter  a all  h help  q quit");
}

}  // namespace sluice
