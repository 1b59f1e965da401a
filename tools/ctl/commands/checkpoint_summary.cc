#include "tools/ctl/commands/checkpoint_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/time_text.h"
#include "common/protocol/optimizer_options.h"
#include "common/wire/settings.h"
#include "tools/ctl/render/status_text.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

constexpr size_t kNamedWorkers = 8;

std::string StageOf(const ShardCheckpoint& state) {
  if (state.finished) return "training had finished";
  return state.ended ? "the job had ended" : "training went on";
}

std::string WrittenText(absl::Time written, absl::Time now) {
  if (written == absl::InfinitePast()) return "unknown";
  const std::string when = absl::FormatTime("%Y-%m-%d %H:%M:%S", written, absl::LocalTimeZone());
  return absl::StrCat(WholeTimeText(std::max(now - written, absl::ZeroDuration())), " ago, at ",
                      when);
}

std::string ModelText(const Layout& layout) {
  std::string text = absl::StrCat(CountText(layout.ranges().size(), "tensor"), ", ",
                                  CountText(layout.size(), "element"), ", ",
                                  BytesText(layout.size() * sizeof(float)));
  if (!layout.constants().empty()) {
    absl::StrAppend(&text, "; beside them ", CountText(layout.constants().size(), "tensor"),
                    " that training does not change");
  }
  return text;
}

std::string SavedTablesText(const ShardCheckpoint& state, const std::vector<TableFigures>& tables) {
  std::string text = CountText(state.layout->tables().size(), "table");
  if (tables.empty()) return text;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  for (const TableFigures& table : tables) {
    rows += table.rows;
    bytes += table.bytes;
  }
  return absl::StrCat(text, ", ", CountText(rows, "row"), ", ", BytesText(bytes),
                      " with the optimizer's slots");
}

std::string OptimizerOf(const ShardCheckpoint& state) {
  const OptimizerOptions& options = OptionsOf(state.optimizer, state.changed, 0);
  std::string text(OptimizerName(options));
  if (!WorkersStep(options)) {
    const double usual = LearningRateOf(state.optimizer.options);
    const bool set = state.learning_rate.has_value() && LearningRateOf(options) == usual;
    const double rate = set ? *state.learning_rate : LearningRateOf(options);
    absl::StrAppend(&text, absl::StrFormat(", learning rate %.6g", rate), ", schedule ",
                    ScheduleKindName(state.schedule.kind));
    if (state.learning_rate.has_value() && !set) {
      absl::StrAppendFormat(&text, "; an operator has set %.6g for %.6g, and so in proportion",
                            *state.learning_rate, usual);
    }
  }
  const size_t groups = state.optimizer.groups.size();
  if (groups > 0) absl::StrAppend(&text, "; ", CountText(groups, "group"), " with other options");
  return text;
}

std::string WorkersText(const ShardCheckpoint& state) {
  std::vector<std::string> names;
  for (const SessionRecord& worker : state.workers) {
    if (worker.role == SessionRole::kWorker) names.push_back(Printable(worker.worker));
  }
  if (names.empty()) return "none";
  const size_t count = names.size();
  const bool all = count <= kNamedWorkers;
  if (!all) names.resize(kNamedWorkers);
  return absl::StrCat(count, " known: ", absl::StrJoin(names, ", "),
                      all ? "" : absl::StrCat(" and ", count - kNamedWorkers, " more"));
}

std::string FilesText(const ShardCheckpoint& state, const CheckpointFiles& files) {
  const std::string servers =
      state.stripes.empty() ? "" : absl::StrCat(", of ", CountText(state.stripes.size(), "server"));
  return absl::StrCat(files.whole ? "complete, every byte was checked; its own take "
                                  : "DAMAGED OR MISSING; found ",
                      BytesText(files.bytes), servers);
}

}  // namespace

std::string SummaryText(const ShardCheckpoint& state, const CheckpointFiles& files,
                        absl::Time now) {
  std::string text = absl::StrCat(
      LabelLine("checkpoint", Printable(files.path)),
      LabelLine("step", absl::StrCat(state.step.value(), " of job ", Printable(state.job_id),
                                     ", incarnation ", state.incarnations.current().value(), "; ",
                                     StageOf(state))),
      LabelLine("written", WrittenText(files.written, now)),
      LabelLine("model", ModelText(*state.layout)));
  if (!state.layout->tables().empty()) {
    text += LabelLine("tables", SavedTablesText(state, files.tables));
  }
  absl::StrAppend(&text, LabelLine("optimizer", OptimizerOf(state)),
                  LabelLine("rules", RulesText(ToProto(state.consistency))),
                  LabelLine("workers", WorkersText(state)));
  if (state.suspect_since.has_value()) {
    text += LabelLine("warning", absl::StrCat("training seems to diverge since step ",
                                              state.suspect_since->value()));
  }
  return text + LabelLine("files", FilesText(state, files));
}

}  // namespace sluice
