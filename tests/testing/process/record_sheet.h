// Writes the results of a run as one JSON object to a file; see tests/README.md.
//
//   RecordSheet sheet("kill_server.journal", seed);
//   sheet.Count("kills", kills);
//   sheet.Times("recovery_s", times);
//   EXPECT_THAT(sheet.Write(), IsOk());

#ifndef SLUICE_TESTS_TESTING_PROCESS_RECORD_SHEET_H_
#define SLUICE_TESTS_TESTING_PROCESS_RECORD_SHEET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sluice {

// Used by one thread.
class RecordSheet {
 public:
  // `run` names the run, and the file.
  explicit RecordSheet(std::string run, uint64_t seed = 0);
  ~RecordSheet();

  RecordSheet(const RecordSheet&) = delete;
  RecordSheet& operator=(const RecordSheet&) = delete;

  // Each call adds a field. The end of its name is its unit, as in "recovery_s". A second call with
  // the same name replaces the value.
  void Count(const std::string& name, uint64_t count);
  void Figure(const std::string& name, double value);
  void Text(const std::string& name, const std::string& text);
  void Series(const std::string& name, const std::vector<double>& values);
  void Counts(const std::string& name, const std::map<std::string, uint64_t>& counts);
  // Adds an object: the number of times, and their p50, p99 and maximum in seconds.
  void Times(const std::string& name, const std::vector<absl::Duration>& times);

  // All fields, and the date, the machine and the command.
  std::string ToJson() const;

  // Writes "<run>.json" to the directory that the environment variable SLUICE_RECORD names, which
  // it creates if needed; if that is unset, to the test's directory for outputs that Bazel keeps.
  // If there is neither, does nothing.
  absl::Status Write() const;
  // Writes the file `path`. UNAVAILABLE if it cannot be written.
  absl::Status WriteTo(const std::string& path) const;

 private:
  struct Figures;

  const std::string run_;
  const uint64_t seed_;
  const std::unique_ptr<Figures> figures_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_RECORD_SHEET_H_
