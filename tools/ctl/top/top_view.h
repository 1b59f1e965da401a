// What `sluicectl top` shows, as lines of text: without a terminal, so that tests can read it.

#ifndef SLUICE_TOOLS_CTL_TOP_TOP_VIEW_H_
#define SLUICE_TOOLS_CTL_TOP_TOP_VIEW_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tools/ctl/render/worker_rows.h"

namespace sluice {

enum class TopStyle { kPlain, kTitle, kStrong };

struct TopLine {
  std::string text;  // printable ASCII
  TopStyle style = TopStyle::kPlain;
};

// A key that was pressed. A letter is printable ASCII.
struct TopKey {
  enum class Kind { kLetter, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEnter, kEscape, kErase };
  Kind kind = Kind::kLetter;
  char letter = 0;
};

// Used by one thread.
class TopView {
 public:
  explicit TopView(std::string address, SortKey sort = SortKey::kLag)
      : address_(std::move(address)), sort_(sort) {}

  // Shows what the server says now. Rates are those since the sample before, if the server is still
  // the same.
  void Take(Sample sample);
  // Shows why there is nothing newer, until the next sample.
  void SetTrouble(std::string why) { trouble_ = std::move(why); }

  // Returns false if the user wants to quit.
  bool Press(const TopKey& key);

  // At most `height` lines of at most `width` characters.
  std::vector<TopLine> Render(int height, int width);

 private:
  std::vector<TopLine> Header() const;
  std::vector<TopLine> Help() const;
  std::vector<WorkerRow> Rows() const;
  void AppendTable(size_t height, std::vector<TopLine>& lines);
  std::string Footer(size_t shown, size_t all) const;
  std::string SpeedText() const;
  void Edit(const TopKey& key);
  bool PressLetter(char letter);
  void NextSort(int by);

  const std::string address_;
  absl::optional<Sample> now_;
  absl::optional<Sample> earlier_;
  std::string trouble_;
  SortKey sort_;
  std::string filter_;  // a part of the name or of the host
  bool editing_ = false;
  bool all_ = false;  // also those that left
  bool help_ = false;
  size_t first_ = 0;  // index of the first row that is shown
  size_t page_ = 1;   // rows that fitted last time
};

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_TOP_TOP_VIEW_H_
