#include "worker/data/libsvm_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "worker/data/inflating_file.h"

namespace sluice {
namespace {

constexpr size_t kMostClasses = 256;
constexpr size_t kBlockBytes = 1 << 16;

// A file before its labels are classes.
struct ParsedText {
  std::string path;
  std::vector<double> labels;
  std::vector<uint64_t> lines;  // of the samples, counted from 1
  SparseRows features;
};

using TakeLine = std::function<absl::Status(absl::string_view line)>;

absl::Status LineError(const std::string& path, uint64_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": line ", line, ": ", what));
}

// Calls take() for each line, without its end and what follows a "#". Its errors are
// InvalidArgument and get the number of the line.
absl::Status ForEachLine(const std::string& path, const TakeLine& take) {
  InflatingFile file(path);
  const absl::Status opened = file.Open();
  if (!opened.ok()) return opened;
  std::array<uint8_t, kBlockBytes> block;
  std::string line;
  for (uint64_t number = 1;;) {
    const absl::StatusOr<size_t> size = file.Read(absl::MakeSpan(block));
    if (!size.ok()) return size.status();
    const bool last = *size == 0;
    absl::string_view text(reinterpret_cast<const char*>(block.data()), *size);
    while (last || !text.empty()) {
      const size_t end = text.find('\n');
      absl::StrAppend(&line, text.substr(0, end));
      if (line.size() > kMaxLibsvmLine) {
        return LineError(path, number,
                         absl::StrCat("expected at most ", kMaxLibsvmLine, " bytes in a line"));
      }
      if (end == text.npos && !last) break;
      const absl::Status taken = take(absl::string_view(line).substr(0, line.find('#')));
      if (!taken.ok()) return LineError(path, number, taken.message());
      if (last) return absl::OkStatus();
      line.clear();
      ++number;
      text.remove_prefix(end + 1);
    }
  }
}

// Shows at most the beginning of what was found.
absl::Status WrongWord(absl::string_view word, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("found \"", absl::CHexEscape(word.substr(0, 40)), "\", expected ", expected));
}

absl::Status TakeFeature(absl::string_view word, ParsedText& parsed) {
  constexpr absl::string_view kExpected =
      "INDEX:VALUE with a whole number from 1 to 16777216 and a finite number";
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(word, absl::MaxSplits(':', 1));
  uint32_t index = 0;
  float value = 0;
  if (!absl::SimpleAtoi(parts.first, &index) || !absl::SimpleAtof(parts.second, &value) ||
      index == 0 || index > kMaxLibsvmIndex || !std::isfinite(value)) {
    return WrongWord(word, kExpected);
  }
  SparseRows& rows = parsed.features;
  const bool first = rows.columns.size() == rows.begins.back();
  if (!first && index - 1 <= rows.columns.back()) {
    return WrongWord(
        word, absl::StrCat("an index above ", rows.columns.back() + 1, ", since indices ascend"));
  }
  if (rows.values.size() == kMaxLibsvmValues) {
    return WrongWord(word, absl::StrCat("at most ", kMaxLibsvmValues, " values in a file"));
  }
  rows.columns.push_back(index - 1);
  rows.values.push_back(value);
  return absl::OkStatus();
}

// A line that is empty is no sample.
absl::Status TakeSample(absl::string_view line, ParsedText& parsed) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  double label = 0;
  if (!absl::SimpleAtod(words[0], &label) || !std::isfinite(label)) {
    return WrongWord(words[0], "a label, which is a finite number");
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const absl::Status taken = TakeFeature(words[i], parsed);
    if (!taken.ok()) return taken;
  }
  if (parsed.labels.size() == kMaxLibsvmSamples) {
    return WrongWord(words[0], absl::StrCat("at most ", kMaxLibsvmSamples, " samples in a file"));
  }
  parsed.labels.push_back(label);
  parsed.features.begins.push_back(parsed.features.values.size());
  return absl::OkStatus();
}

absl::StatusOr<std::string> FindFile(const std::string& folder, DatasetSplit split) {
  const char* const name = split == DatasetSplit::kTrain ? "/train.libsvm" : "/test.libsvm";
  return FindEitherForm(folder + name,
                        "give the folder of train.libsvm and test.libsvm with --data-dir");
}

absl::StatusOr<ParsedText> Parse(const std::string& folder, DatasetSplit split) {
  const auto path = FindFile(folder, split);
  if (!path.ok()) return path.status();
  ParsedText parsed;
  parsed.path = *path;
  uint64_t number = 0;
  const absl::Status read = ForEachLine(*path, [&](absl::string_view line) {
    ++number;
    const absl::Status taken = TakeSample(line, parsed);
    if (parsed.lines.size() < parsed.labels.size()) parsed.lines.push_back(number);
    return taken;
  });
  if (!read.ok()) return read;
  if (parsed.labels.empty()) {
    return absl::DataLossError(absl::StrCat(*path, ": the file has no sample; copy it again"));
  }
  return parsed;
}

absl::StatusOr<std::vector<double>> ClassesOf(const ParsedText& train) {
  std::vector<double> labels = train.labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (labels.size() >= 2 && labels.size() <= kMostClasses) return labels;
  return absl::InvalidArgumentError(absl::StrCat(train.path, ": expected 2 to ", kMostClasses,
                                                 " different labels, the classes; found ",
                                                 labels.size(), " (Sluice trains no regression)"));
}

absl::StatusOr<std::vector<uint8_t>> ClassOfEach(const ParsedText& parsed,
                                                 const std::vector<double>& classes) {
  std::vector<uint8_t> labels;
  for (size_t i = 0; i < parsed.labels.size(); ++i) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), parsed.labels[i]);
    if (found == classes.end() || *found != parsed.labels[i]) {
      return absl::InvalidArgumentError(absl::StrCat(parsed.path, ": line ", parsed.lines[i],
                                                     ": the label is ", parsed.labels[i],
                                                     ", expected one that the training file has"));
    }
    labels.push_back(static_cast<uint8_t>(found - classes.begin()));
  }
  return labels;
}

uint32_t ColumnsOf(const SparseRows& rows) {
  const auto last = std::max_element(rows.columns.begin(), rows.columns.end());
  return last == rows.columns.end() ? 1 : *last + 1;
}

// Leaves out the columns from `columns` on.
SparseRows Narrowed(const SparseRows& rows, uint32_t columns) {
  SparseRows narrowed;
  for (size_t row = 0; row + 1 < rows.begins.size(); ++row) {
    for (uint64_t i = rows.begins[row]; i < rows.begins[row + 1]; ++i) {
      if (rows.columns[i] >= columns) break;
      narrowed.columns.push_back(rows.columns[i]);
      narrowed.values.push_back(rows.values[i]);
    }
    narrowed.begins.push_back(narrowed.values.size());
  }
  return narrowed;
}

}  // namespace

absl::StatusOr<Dataset> LoadLibsvmDataset(const std::string& folder, DatasetSplit split) {
  absl::StatusOr<ParsedText> parsed = Parse(folder, DatasetSplit::kTrain);
  if (!parsed.ok()) return parsed.status();
  const auto classes = ClassesOf(*parsed);
  if (!classes.ok()) return classes.status();
  const uint32_t columns = ColumnsOf(parsed->features);
  if (split == DatasetSplit::kTest) {
    parsed = Parse(folder, DatasetSplit::kTest);
    if (!parsed.ok()) return parsed.status();
    parsed->features = Narrowed(parsed->features, columns);
  }
  auto labels = ClassOfEach(*parsed, *classes);
  if (!labels.ok()) return labels.status();
  Dataset data;
  data.form = {1, 1, columns, static_cast<int64_t>(classes->size())};
  data.normalization.clear();
  data.features = std::move(parsed->features);
  data.labels = *std::move(labels);
  return data;
}

absl::StatusOr<uint64_t> CountLibsvmSamples(const std::string& folder, DatasetSplit split) {
  const auto path = FindFile(folder, split);
  if (!path.ok()) return path.status();
  uint64_t samples = 0;
  const absl::Status read = ForEachLine(*path, [&](absl::string_view line) {
    if (line.find_first_not_of(" \t\r") != line.npos) ++samples;
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return samples;
}

}  // namespace sluice
