// Reads scripts, and plays their stories. README.md has the language.

#ifndef SLUICE_TESTS_SCRIPTS_PLAYER_H_
#define SLUICE_TESTS_SCRIPTS_PLAYER_H_

#include <string>
#include <vector>

namespace sluice {

// An action, and what must be answered.
struct ScriptLine {
  int number = 0;                  // in its file
  std::vector<std::string> words;  // of the action
  std::vector<float> values;       // after a colon
  std::string answers;             // after the arrow
};

struct Story {
  std::string sentence;
  std::vector<std::string> rows;  // the jobs that it is played with: "1", "3", "grpc", "shared"
  std::vector<ScriptLine> lines;
};

// Fails the current test, and names the line, if the file is not a script.
std::vector<Story> ReadScript(const std::string& path);

// Plays a story with one of its rows. Fails the current test, and names the line, if what is
// answered is not what the story says.
void Play(const Story& story, const std::string& path, const std::string& row);

}  // namespace sluice

#endif  // SLUICE_TESTS_SCRIPTS_PLAYER_H_
