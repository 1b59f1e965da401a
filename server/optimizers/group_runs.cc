#include "server/optimizers/group_runs.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace sluice {

std::vector<GroupRun> RangeRuns(const Layout& layout, const OptimizerConfig& config) {
  absl::flat_hash_map<absl::string_view, size_t> groups;
  for (size_t i = 0; i < config.groups.size(); ++i) {
    for (const std::string& name : config.groups[i].parameters) groups[name] = i + 1;
  }
  std::vector<GroupRun> runs;
  runs.reserve(layout.ranges().size());
  for (const LayoutRange& range : layout.ranges()) {
    const auto found = groups.find(range.name);
    const size_t group = found == groups.end() ? 0 : found->second;
    runs.push_back({range.kind, group, range.offset, range.end()});
  }
  return runs;
}

std::vector<GroupRun> Joined(const std::vector<GroupRun>& runs) {
  std::vector<GroupRun> joined;
  for (const GroupRun& run : runs) {
    if (!joined.empty() && joined.back().kind == run.kind && joined.back().group == run.group) {
      joined.back().end = run.end;
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

}  // namespace sluice
