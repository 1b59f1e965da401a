#include "common/tensor/layout.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/utf8.h"

namespace sluice {
namespace {

absl::Status BadRange(size_t index, const LayoutRange& range, absl::string_view problem) {
  return MakeError(Reason::kBadLayout, absl::StrCat("range ", index, " of the layout (\"",
                                                    Shown(range.name), "\"): ", problem));
}

// The product of `shape`; 0 if a dimension is 0 or the product exceeds the limit.
uint64_t ElementsOf(const std::vector<uint32_t>& shape) {
  uint64_t elements = 1;
  for (const uint32_t dimension : shape) {
    if (dimension == 0 || elements > Layout::kMaxElements / dimension) return 0;
    elements *= dimension;
  }
  return elements;
}

// What is wrong with the name of a range or table; empty: nothing.
std::string NameProblem(const std::string& name) {
  if (absl::StartsWith(name, "sluice:") || name == "__metadata__") {
    return "names that begin with sluice: are the server's, and __metadata__ is that of "
           "checkpoints";
  }
  if (name.empty() || name.size() > Layout::kMaxNameBytes) {
    return absl::StrCat("its name has ", name.size(), " bytes, expected 1 to ",
                        Layout::kMaxNameBytes);
  }
  return IsUtf8(name) ? "" : "its name is not UTF-8; rename the tensor";
}

absl::Status CheckRange(size_t index, const LayoutRange& range, uint64_t expected_offset) {
  const std::string name_problem = NameProblem(range.name);
  if (!name_problem.empty()) return BadRange(index, range, name_problem);
  if (range.dtype == DataType::kInt64 && range.kind != RangeKind::kStatistic) {
    return BadRange(index, range, "it is a parameter of int64; only statistics may be integers");
  }
  if (range.shape.size() > Layout::kMaxDimensions) {
    return BadRange(index, range,
                    absl::StrCat("it has ", range.shape.size(), " dimensions, expected at most ",
                                 Layout::kMaxDimensions));
  }
  if (std::count(range.shape.begin(), range.shape.end(), 0u) > 0) {
    return BadRange(index, range,
                    absl::StrCat("shape ", ShapeString(range.shape),
                                 " has no elements, expected at least one; leave the tensor out"));
  }
  const uint64_t elements = ElementsOf(range.shape);
  if (elements == 0 || elements != range.length) {
    return BadRange(index, range,
                    absl::StrCat("shape ", ShapeString(range.shape),
                                 " does not hold its length of ", range.length, " elements"));
  }
  if (range.offset != expected_offset) {
    return BadRange(index, range,
                    absl::StrCat("it starts at ", range.offset, ", expected ", expected_offset,
                                 ", the end of the range before it"));
  }
  if (range.end() > Layout::kMaxElements) {
    return BadRange(index, range,
                    absl::StrCat("the vector exceeds ", Layout::kMaxElements, " elements"));
  }
  return absl::OkStatus();
}

absl::Status Differs(absl::string_view difference) {
  return MakeError(Reason::kLayoutMismatch,
                   absl::StrCat("this worker's model differs from the job's: ", difference,
                                "; start every worker with the same model"));
}

absl::Status BadTableName(size_t index, const TableSpec& table, absl::string_view problem) {
  return MakeError(Reason::kBadLayout, absl::StrCat("table ", index, " of the layout (\"",
                                                    Shown(table.name), "\"): ", problem));
}

// `names` are those of the ranges; the tables' are added.
absl::Status CheckTables(const std::vector<TableSpec>& tables,
                         absl::flat_hash_set<absl::string_view> names) {
  if (tables.size() > TableSpec::kMaxTables) {
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("the layout has ", tables.size(), " tables, expected at most ",
                                  TableSpec::kMaxTables));
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    const std::string problem = NameProblem(tables[i].name);
    if (!problem.empty()) return BadTableName(i, tables[i], problem);
    if (!names.insert(tables[i].name).second) {
      return BadTableName(i, tables[i], "a range or another table has the same name");
    }
    const absl::Status valid = Validate(tables[i]);
    if (!valid.ok()) return valid;
  }
  return absl::OkStatus();
}

absl::Status CheckSameTables(const std::vector<TableSpec>& job,
                             const std::vector<TableSpec>& worker) {
  const size_t common = std::min(job.size(), worker.size());
  for (size_t i = 0; i < common; ++i) {
    if (job[i] == worker[i]) continue;
    return Differs(absl::StrCat("table ", i, " is ", Describe(worker[i]), ", the job's is ",
                                Describe(job[i])));
  }
  if (job.size() == worker.size()) return absl::OkStatus();
  return Differs(absl::StrCat("it has ", worker.size(), " tables, the job's has ", job.size()));
}

// What is wrong with a constant by itself; empty: nothing. Adds its bytes to `bytes`.
std::string ConstantProblem(const ConstantTensor& constant, uint64_t* bytes) {
  const std::string name_problem = NameProblem(constant.name);
  if (!name_problem.empty()) return name_problem;
  if (constant.shape.size() > Layout::kMaxDimensions) {
    return absl::StrCat("it has ", constant.shape.size(), " dimensions, expected at most ",
                        Layout::kMaxDimensions);
  }
  const uint64_t element = ElementBytes(constant.dtype);
  if (element == 0) {
    return absl::StrCat("it has the type ", Shown(constant.dtype),
                        ", expected one of safetensors, such as I64");
  }
  const auto own = BytesOf(constant.shape, element, Layout::kMaxConstantBytes);
  if (!own.has_value() || *bytes + *own > Layout::kMaxConstantBytes) {
    return absl::StrCat("the constants exceed ", Layout::kMaxConstantBytes, " bytes");
  }
  *bytes += *own;
  return "";
}

// `names` has the ranges' indices.
absl::Status CheckConstants(const std::vector<ConstantTensor>& constants,
                            const std::vector<LayoutRange>& ranges,
                            const absl::flat_hash_map<absl::string_view, size_t>& names) {
  if (constants.size() > Layout::kMaxConstants) {
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("the layout has ", constants.size(),
                                  " constants, expected at most ", Layout::kMaxConstants));
  }
  absl::flat_hash_set<absl::string_view> known;
  uint64_t bytes = 0;
  for (size_t i = 0; i < constants.size(); ++i) {
    std::string problem = ConstantProblem(constants[i], &bytes);
    const auto range = names.find(constants[i].name);
    if (problem.empty() && range != names.end() &&
        ranges[range->second].kind != RangeKind::kStatistic) {
      problem = "a parameter has the same name";
    }
    if (problem.empty() && !known.insert(constants[i].name).second) {
      problem = "another constant has the same name";
    }
    if (problem.empty()) continue;
    return MakeError(Reason::kBadLayout, absl::StrCat("constant ", i, " of the layout (\"",
                                                      Shown(constants[i].name), "\"): ", problem));
  }
  return absl::OkStatus();
}

std::string Describe(const ConstantTensor& constant) {
  return absl::StrCat("\"", Shown(constant.name), "\" [", absl::StrJoin(constant.shape, ", "), "] ",
                      constant.dtype);
}

absl::Status CheckSameConstants(const std::vector<ConstantTensor>& job,
                                const std::vector<ConstantTensor>& worker) {
  const size_t common = std::min(job.size(), worker.size());
  for (size_t i = 0; i < common; ++i) {
    if (job[i] == worker[i]) continue;
    return Differs(absl::StrCat("the tensor that is not trained ", i, " is ", Describe(worker[i]),
                                ", the job's is ", Describe(job[i])));
  }
  if (job.size() == worker.size()) return absl::OkStatus();
  const bool more = worker.size() > common;
  return Differs(absl::StrCat("it has ", worker.size(), " tensors that are not trained, the job's ",
                              "has ", job.size(), "; ",
                              more ? "one too many is " : "the first that it lacks is ",
                              Describe(more ? worker[common] : job[common])));
}

std::string Describe(const LayoutRange& range) {
  return absl::StrCat("\"", Shown(range.name), "\" ", ShapeString(range.shape), " ",
                      DataTypeName(range.dtype), " ", RangeKindName(range.kind));
}

}  // namespace

bool operator==(const LayoutRange& a, const LayoutRange& b) {
  return a.name == b.name && a.shape == b.shape && a.kind == b.kind && a.dtype == b.dtype &&
         a.offset == b.offset && a.length == b.length;
}

absl::StatusOr<Layout> Layout::Create(std::vector<LayoutRange> ranges,
                                      std::vector<TableSpec> tables,
                                      std::vector<ConstantTensor> constants) {
  if (ranges.empty() && tables.empty()) {
    return MakeError(Reason::kBadLayout,
                     "the layout has 0 ranges and 0 tables, expected at least one of either; give "
                     "the model a tensor or a table");
  }
  if (ranges.size() > kMaxRanges) {
    return MakeError(Reason::kBadLayout, absl::StrCat("the layout has ", ranges.size(),
                                                      " ranges, expected at most ", kMaxRanges));
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const absl::Status status = CheckRange(i, ranges[i], offset);
    if (!status.ok()) return status;
    offset = ranges[i].end();
  }
  const auto parts = std::make_shared<Parts>();
  parts->ranges = std::move(ranges);
  parts->tables = std::move(tables);
  parts->constants = std::move(constants);
  parts->by_name.reserve(parts->ranges.size());
  for (size_t i = 0; i < parts->ranges.size(); ++i) {
    if (parts->by_name.emplace(parts->ranges[i].name, i).second) continue;
    return BadRange(i, parts->ranges[i], "another range has the same name");
  }
  if (!parts->tables.empty()) {
    absl::flat_hash_set<absl::string_view> names;
    for (const LayoutRange& range : parts->ranges) names.insert(range.name);
    const absl::Status tables_are_valid = CheckTables(parts->tables, std::move(names));
    if (!tables_are_valid.ok()) return tables_are_valid;
  }
  const absl::Status sound = CheckConstants(parts->constants, parts->ranges, parts->by_name);
  if (!sound.ok()) return sound;
  Layout layout;
  layout.parts_ = parts;
  return layout;
}

struct Layout::Whole {
  Layout layout;
  Stripe stripe;
};

Layout Layout::OfStripe(const Stripes& stripes, uint32_t stripe) const {
  if (stripes.count() == 1) return *this;
  std::vector<LayoutRange> parts;
  for (const LayoutRange& tensor : ranges()) {
    LayoutRange part = tensor;
    part.offset = stripes.Before(stripe, tensor.offset);
    part.length = stripes.Before(stripe, tensor.end()) - part.offset;
    part.shape = {static_cast<uint32_t>(part.length)};
    if (part.length > 0) parts.push_back(std::move(part));
  }
  Layout layout;
  if (parts.empty()) {
    const auto only_tables = std::make_shared<Parts>();
    only_tables->tables = tables();
    layout.parts_ = only_tables;
  } else {
    layout = Create(std::move(parts), tables()).value();
  }
  layout.whole_ = std::make_shared<const Whole>(Whole{*this, {stripes, stripe}});
  return layout;
}

const std::vector<LayoutRange>& Layout::ranges() const {
  static const auto* const none = new std::vector<LayoutRange>();
  return parts_ == nullptr ? *none : parts_->ranges;
}

const std::vector<TableSpec>& Layout::tables() const {
  static const auto* const none = new std::vector<TableSpec>();
  return parts_ == nullptr ? *none : parts_->tables;
}

const std::vector<ConstantTensor>& Layout::constants() const {
  static const auto* const none = new std::vector<ConstantTensor>();
  return parts_ == nullptr ? *none : parts_->constants;
}

std::vector<KindRun> Layout::Runs() const {
  std::vector<KindRun> runs;
  for (const LayoutRange& range : ranges()) {
    if (runs.empty() || runs.back().kind != range.kind) {
      runs.push_back({range.kind, range.offset, range.offset});
    }
    runs.back().end = range.end();
  }
  return runs;
}

const LayoutRange* Layout::Find(absl::string_view name) const {
  if (parts_ == nullptr) return nullptr;
  const auto it = parts_->by_name.find(name);
  return it == parts_->by_name.end() ? nullptr : &parts_->ranges[it->second];
}

const Stripe* Layout::stripe() const { return whole_ == nullptr ? nullptr : &whole_->stripe; }

const LayoutRange& Layout::WholeOf(const LayoutRange& range) const {
  const LayoutRange* const tensor = whole_ == nullptr ? nullptr : whole_->layout.Find(range.name);
  return tensor == nullptr ? range : *tensor;
}

std::string Layout::ElementName(uint64_t offset) const {
  if (whole_ != nullptr) {
    const Stripe& stripe = whole_->stripe;
    return whole_->layout.ElementName(stripe.all.InVector(stripe.index, offset));
  }
  const auto after =
      std::upper_bound(ranges().begin(), ranges().end(), offset,
                       [](uint64_t o, const LayoutRange& range) { return o < range.offset; });
  if (after == ranges().begin()) return absl::StrCat("element ", offset);  // there is none
  const LayoutRange& range = *(after - 1);
  return absl::StrCat(range.name, "[", offset - range.offset, "]");
}

absl::Status CheckSameLayout(const Layout& job, const Layout& worker) {
  if (&job.ranges() == &worker.ranges()) return absl::OkStatus();
  const size_t common = std::min(job.ranges().size(), worker.ranges().size());
  for (size_t i = 0; i < common; ++i) {
    if (job.ranges()[i] == worker.ranges()[i]) continue;
    return Differs(absl::StrCat("tensor ", i, " is ", Describe(worker.ranges()[i]),
                                ", the job's is ", Describe(job.ranges()[i])));
  }
  if (job.ranges().size() == worker.ranges().size()) {
    const absl::Status same = CheckSameTables(job.tables(), worker.tables());
    return same.ok() ? CheckSameConstants(job.constants(), worker.constants()) : same;
  }
  const bool more = worker.ranges().size() > common;
  return Differs(absl::StrCat("it has ", worker.ranges().size(), " tensors, the job's has ",
                              job.ranges().size(), "; ",
                              more ? "one too many is " : "the first that it lacks is ",
                              Describe(more ? worker.ranges()[common] : job.ranges()[common])));
}

std::string ShapeString(const std::vector<uint32_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::string_view RangeKindName(RangeKind kind) {
  return kind == RangeKind::kParameter ? "parameter" : "statistic";
}

absl::string_view DataTypeName(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat64:
      return "float64";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kInt64:
      return "int64";
    case DataType::kFloat32:
      break;
  }
  return "float32";
}

}  // namespace sluice
