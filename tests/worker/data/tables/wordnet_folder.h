// A folder with a WordNet of five synsets.

#ifndef SLUICE_TESTS_WORKER_DATA_TABLES_WORDNET_FOLDER_H_
#define SLUICE_TESTS_WORKER_DATA_TABLES_WORDNET_FOLDER_H_

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace sluice {

class WordnetFolder {
 public:
  WordnetFolder()
      : path_(::testing::TempDir() + "wordnet" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    mkdir(path_.c_str(), 0700);
    // Lines of the files as wndb(5WN) describes them.
    Write("noun",
          "  1 This software and database\n"
          "00000010 03 n 01 entity 0 001 ~ 00000020 n 0000 | that which is\n"
          "00000020 03 n 02 thing 0 object 1 002 @ 00000010 n 0000 + 00000010 v 0101 | a thing\n");
    Write("verb", "00000010 29 v 01 exist 0 001 @ 00000010 v 0000 01 + 02 00 | be\n");
    Write("adj",
          "00000010 00 a 01 able 0 001 & 00000020 a 0000 | having means\n"
          "00000020 00 s 01 fit(p) 0 001 & 00000010 a 0000 | suited\n");
    Write("adv", "");
  }

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& part) const { return path_ + "/data." + part; }
  void Write(const std::string& part, const std::string& text) const {
    std::ofstream(PathOf(part)) << text;
  }

 private:
  const std::string path_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORKER_DATA_TABLES_WORDNET_FOLDER_H_
