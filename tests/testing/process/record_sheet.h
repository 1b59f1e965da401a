// Writes the results of a run as one JSON object to a file. tests/README.md lists the fields.
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

// For one thread.
class RecordSheet {
 public:
  // `run` names the run, and the file.
  explicit RecordSheet(std::string run, uint64_t seed = 0);
  ~RecordSheet();

  RecordSheet(const RecordSheet&) = delete;
  RecordSheet& operator=(const RecordSheet&) = delete;

  // A figure each; a name that ends with a unit has it, as in "recovery_s". One that is given again
  // replaces the one before.
  void Count(const std::string& name, uint64_t count);
  void Figure(const std::string& name, double value);
  void Text(const std::string& name, const std::string& text);
  void Series(const std::string& name, const std::vector<double>& values);
  void Counts(const std::string& name, const std::map<std::string, uint64_t>& counts);
  // How many there are, and their p50, p99 and largest in seconds.
  void Times(const std::string& name, const std::vector<absl::Duration>& times);

  // With the date, the machine and the command.
  std::string ToJson() const;

  // To "<run>.json" in the directory that SLUICE_RECORD names, which is made if need be, or else in
  // the one that Bazel keeps of a test; without either it does nothing.
  absl::Status Write() const;
  // To that file.
  absl::Status WriteTo(const std::string& path) const;

 private:
  struct Figures;

  const std::string run_;
  const uint64_t seed_;
  const std::unique_ptr<Figures> figures_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_RECORD_SHEET_H_
