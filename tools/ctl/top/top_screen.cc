#include "tools/ctl/top/top_screen.h"

#define NCURSES_NOMACROS 1  // or `erase` and `timeout` mean curses' everywhere below
#include <curses.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr int kEscapeDelay = 50;  // milliseconds in which the rest of a key's sequence comes
constexpr int kEscape = 27;
constexpr int kDelete = 127;

attr_t AttributesOf(TopStyle style) {
  switch (style) {
    case TopStyle::kTitle:
      return A_REVERSE;
    case TopStyle::kStrong:
      return A_BOLD;
    case TopStyle::kPlain:
      break;
  }
  return A_NORMAL;
}

absl::optional<TopKey> KeyOf(int code) {
  using Kind = TopKey::Kind;
  switch (code) {
    case KEY_UP:
      return TopKey{Kind::kUp};
    case KEY_DOWN:
      return TopKey{Kind::kDown};
    case KEY_PPAGE:
      return TopKey{Kind::kPageUp};
    case KEY_NPAGE:
      return TopKey{Kind::kPageDown};
    case KEY_HOME:
      return TopKey{Kind::kHome};
    case KEY_END:
      return TopKey{Kind::kEnd};
    case KEY_ENTER:
    case '\n':
    case '\r':
      return TopKey{Kind::kEnter};
    case KEY_BACKSPACE:
    case kDelete:
    case '\b':
      return TopKey{Kind::kErase};
    case kEscape:
      return TopKey{Kind::kEscape};
    default:
      break;
  }
  if (code < 0 || code >= kDelete || !absl::ascii_isprint(static_cast<unsigned char>(code))) {
    return absl::nullopt;
  }
  return TopKey{Kind::kLetter, static_cast<char>(code)};
}

class CursesScreen final : public TopScreen {
 public:
  explicit CursesScreen(SCREEN* screen) : screen_(screen) {
    cbreak();
    noecho();
    nonl();
    set_escdelay(kEscapeDelay);
    keypad(stdscr, TRUE);
    curs_set(0);
  }

  ~CursesScreen() override {
    endwin();
    delscreen(screen_);
  }

  int height() const override { return getmaxy(stdscr); }
  int width() const override { return getmaxx(stdscr); }

  void Draw(const std::vector<TopLine>& lines) override {
    erase();
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string text = lines[i].text;
      if (lines[i].style == TopStyle::kTitle) text.resize(static_cast<size_t>(width()), ' ');
      attrset(AttributesOf(lines[i].style));
      mvaddnstr(static_cast<int>(i), 0, text.c_str(), width());
    }
    attrset(A_NORMAL);
    refresh();
  }

  absl::optional<TopKey> ReadKey(absl::Duration longest) override {
    timeout(static_cast<int>(absl::ToInt64Milliseconds(longest)));
    return KeyOf(getch());
  }

 private:
  SCREEN* const screen_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TopScreen>> TopScreen::Open() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
    return absl::InvalidArgumentError(
        "top found no terminal, and needs one; use status, workers or watch instead");
  }
  SCREEN* const screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* const kind = std::getenv("TERM");
    return absl::InvalidArgumentError(
        absl::StrCat("the kind of the terminal is ", kind == nullptr ? "not set" : Shown(kind),
                     ", expected one that this machine knows; set TERM, for example to xterm"));
  }
  return std::make_unique<CursesScreen>(screen);
}

}  // namespace sluice
