#!/usr/bin/env python3
"""Makes a manual page and bash's completion from what a program says with --help-all, or --help.

Usage: describe.py PROGRAM VERSION FOLDER

Writes FOLDER/NAME.1 and FOLDER/NAME, where NAME is the file name of PROGRAM. The page's date is that of
SOURCE_DATE_EPOCH. What the help does not say, the manual page has from pages of this tree: exit codes, variables of
the environment, and examples.
"""

import dataclasses
import os
import re
import subprocess
import sys
import time

# The name of an option has so many columns (common/base/help_text.cc). If there is not room enough, its text begins a new line.
COLUMN = 30
TREE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
# Its tables have the exit codes and the variables of all programs whose help does not say them.
TABLES = "worker/README.md"
# Their blocks of commands are the examples of programs whose help has none.
COMMANDS = ("tools/README.md", "tools/ctl/README.md", "worker/torch/README.md")
EXIT_CODES = "Exit codes: "


@dataclasses.dataclass
class Option:
    names: str  # "-h,--help"; or the name of an argument or a command
    value: str  # "TEXT" or "{sync,async}", or empty
    text: str = ""

    def flags(self):
        return [name for name in self.names.split(",") if name.startswith("--")]

    def choices(self):
        """The values that the option knows: those of "{a,b}"."""
        known = re.search(r"\{([^}]*)\}", self.value)
        return known.group(1).split(",") if known else []

    def is_file(self):
        return bool(re.match(r"(PEM )?(file|folder|directory)\b", self.text))


@dataclasses.dataclass
class Section:
    title: str
    text: str = ""
    options: list = dataclasses.field(default_factory=list)


class Help:
    """What --help says."""

    def __init__(self, text):
        purpose, _, rest = text.partition("Usage: ")
        self.purpose = purpose.strip()
        self.usage, _, rest = rest.partition("\n")
        self.sections, self.notes, self.ended = [], [], False
        for line in rest.splitlines():
            self._add(line)

    def _add(self, line):
        title = re.match(r"(\S[^(]*?)(?: \((.*)\))?:$", line)
        if title:
            self.sections.append(Section(title.group(1), title.group(2) or ""))
            self.ended = False
        elif not line:
            self.ended = bool(self.sections)
        elif not line.startswith(" ") and self.ended:
            self.notes.append(line)
            self.ended = False
        elif not line.startswith(" ") and self.notes:
            self.notes[-1] += " " + line
        elif self.sections:
            self._add_to(self.sections[-1], line)

    @staticmethod
    def _add_to(section, line):
        if not line[:COLUMN].strip():
            section.options[-1].text = (section.options[-1].text + " " + line.strip()).strip()
            return
        has_room = line[COLUMN - 1:COLUMN] in ("", " ")
        names, _, value = line[:COLUMN if has_room else None].strip().partition(" ")
        section.options.append(Option(names, value, line[COLUMN:].strip() if has_room else ""))

    def section(self, title):
        return next((section.options for section in self.sections if section.title == title), [])

    def options(self):
        return [option for section in self.sections if section.title not in ("Positionals", "Subcommands")
                for option in section.options]


def help_of(program, *words):
    for flag in ("--help-all", "--help"):  # `sluice` itself has the latter alone
        told = subprocess.run([program, *words, flag], check=False, capture_output=True, text=True)
        if told.returncode == 0:
            return Help(told.stdout)
    sys.exit(f"{' '.join([program, *words])} --help ends with {told.returncode}: {told.stderr}")


# ---- Pages ----


def read_page(page):
    with open(os.path.join(TREE, page), encoding="utf-8") as file:
        return file.read()


def without_marks(text):
    """A line of Markdown as plain text."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").strip()


def table(page, first_title):
    """The rows of the table of a page whose first column has this title: the titles, then the others, as lists."""
    found = re.search(rf"^\| {first_title} \|.*\n(?:\|.*\n)+", read_page(page), re.MULTILINE)
    rows = [row.strip("|").split("|") for row in found.group().splitlines()]
    return [rows[0], *rows[2:]]


# ---- What a program ends with, reads and is called with ----


def exit_codes(name, root):
    """Of a program, as (code, text), then sentences about others: of its help, or of its column of the table."""
    told = next((note.partition(EXIT_CODES)[2] for note in root.notes if EXIT_CODES in note), None)
    if told is None:
        titles, *rows = table(TABLES, "exit code")
        column = next((i for i, title in enumerate(titles) if f"`{name}`" in title), None)
        if column is None:
            return [], []
        codes = [(row[0].strip(), without_marks(row[column])) for row in rows if row[column].strip()]
        others = [] if name == "sluice_server" else ["A rank that serves ends with the codes of sluice_server(1)."]
        return codes, others
    parts = [part.strip().partition(" ") for part in told.rstrip(".").split("; ")]
    codes = [(code, text) for code, _, text in parts if code.isdigit()]
    others = [f"{part[0].capitalize()} {part[2]}." for part in parts if not part[0].isdigit()]
    return codes, others


def variable_of(option):
    return "SLUICE_" + option.flags()[-1].removeprefix("--").upper().replace("-", "_")


def environment(name, root):
    """How a program reads variables: sentences, and (variables, what they do) of the table."""
    sentences = [note for note in root.notes if "SLUICE_" in note]
    example = next((option for option in root.options() if option.value and option.names != "--config"), None)
    if sentences and example:
        sentences[0] += f" For example, {variable_of(example)} stands for {example.flags()[-1]}."
    rows = table(TABLES, "variable")[1:]
    return sentences, [(without_marks(row[0]), without_marks(row[2])) for row in rows if f"`{name}`" in row[1]]


def examples_in(told):
    """The lines below "Examples:" in a help."""
    found = re.search(r"^Examples:\n((?:  \S.*\n)+)", told, re.MULTILINE)
    return [line.strip() for line in found.group(1).splitlines()] if found else []


def examples_on_pages(name):
    """The commands of this program in blocks of the pages, those that say what they are for."""
    found = []
    for page in COMMANDS:
        for block in re.findall(r"^```\n(.*?)^```$", read_page(page), re.MULTILINE | re.DOTALL):
            found += [line for line in block.splitlines() if re.match(rf"{name} .*\S +# ", line)]
    return found


def examples_of(program):
    told = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    return examples_in(told) or examples_on_pages(os.path.basename(program))


def own_options(its):
    """The options of a command, without --help."""
    return [option for option in its.options() if option.names != "-h,--help"]


def programs_of(root):
    """The programs that `sluice` runs, if this is its help: command -> program."""
    runs = ((option.names, re.search(r"\((\w+)\)$", option.text)) for option in root.section("Subcommands"))
    return {command: program.group(1) for command, program in runs if program}


def commands_of(program, root):
    """The commands of a program, and theirs: words -> Help."""
    if programs_of(root):
        return {}
    found, ahead = {}, [(option.names,) for option in root.section("Subcommands")]
    while ahead:
        words = ahead.pop(0)
        found[words] = help_of(program, *words)
        ahead += [(*words, option.names) for option in found[words].section("Subcommands")]
    return found


# ---- Manual page ----


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def entries(options):
    for option in options:
        yield ".TP"
        value = f" {escaped(option.value)}" if option.value else ""
        yield f"\\fB{escaped(option.names)}\\fR{value}"
        yield escaped(option.text or "\\&")


def closing_sections(name, root, examples):
    codes, others = exit_codes(name, root)
    if codes:
        yield ".SH EXIT STATUS"
        for sentence in others:
            yield from (".PP", escaped(sentence))
        for code, text in codes:
            yield from (".TP", f"\\fB{code}\\fR", escaped(text))
    sentences, variables = environment(name, root)
    if sentences or variables:
        yield ".SH ENVIRONMENT"
        for sentence in sentences:
            yield from (".PP", escaped(sentence))
        for names, text in variables:
            yield from (".TP", f"\\fB{escaped(names)}\\fR", escaped(text))
    # Of "Something more. Exit codes: …" the codes stand above.
    notes = [note.partition(EXIT_CODES)[0].strip() for note in root.notes if note not in sentences and "SLUICE_" not in note]
    if any(notes):
        yield ".SH NOTES"
        for note in filter(None, notes):
            yield from (".PP", escaped(note))
    if examples:
        yield from (".SH EXAMPLES", ".EX", *map(escaped, examples), ".EE")


def manual(name, version, root, commands, date, examples=()):
    yield f'.TH {name.upper()} 1 "{date}" "Sluice {version}" "User Commands"'
    yield from (".SH NAME", f"{name} \\- {escaped(root.purpose[0].lower() + root.purpose[1:].rstrip('.'))}")
    yield from (".SH SYNOPSIS", f".B {escaped(root.usage)}")
    yield from (".SH DESCRIPTION", escaped(root.purpose))
    if commands:
        yield ".SH COMMANDS"
        for words, its in commands.items():
            if its.section("Subcommands"):
                continue
            arguments = " ".join(argument.names for argument in its.section("Positionals"))
            yield from (".TP", f"\\fB{escaped(' '.join(words))}\\fR \\fI{escaped(arguments)}\\fR", escaped(its.purpose))
            if own_options(its):
                yield from (".RS", *entries(own_options(its)), ".RE")
    if programs_of(root):
        yield from (".SH COMMANDS", *entries(root.section("Subcommands")))
    else:
        yield ".SH OPTIONS"
    for section in root.sections:
        if section.title in ("Positionals", "Subcommands"):
            continue
        if section.title != "Options":
            yield from (f".SS {escaped(section.title)}", escaped(section.text))
        yield from entries(section.options)
    yield from closing_sections(name, root, examples)
    others = {"sluice", "sluice_server", "sluice_train", "sluice_evaluate", "sluice_doctor", "sluicectl"} - {name}
    yield from (".SH SEE ALSO", ", ".join(f"{escaped(other)}(1)" for other in sorted(others)))
    yield from (".PP", escaped("Guides: README.md and worker/guides in /usr/share/doc/sluice (package sluice-doc)"))


# ---- Completion ----


def cases(options):
    """What completes the value of each option that has one."""
    actions = {}
    for option in options:
        if not option.value or not option.flags():
            continue
        if option.choices():
            action = f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(option.choices())}" -- "$cur")'
        else:
            action = "_filedir" if option.is_file() else ":"
        actions.setdefault(action, []).extend(option.flags())
    for action, flags in actions.items():
        yield f"    {' | '.join(flags)}) {action}; return ;;"


def words_for(options):
    return [flag + ("=" if option.value else "") for option in options for flag in option.flags()]


def choose(words):
    return f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(words)}" -- "$cur")'


def completion_of_command(path, its):
    """Completes after a command: its commands, or its flags and files."""
    choices = [option.names for option in its.section("Subcommands")]
    if choices:
        yield f'    "{" ".join(path)}") {choose(choices)}; return ;;'
        return
    yield f'    "{" ".join(path)}"*)'
    yield f'      flags+=" {" ".join(words_for(own_options(its)))}"'
    yield '      case "$prev" in'
    yield from ("  " + line for line in cases(own_options(its)))
    yield "      esac"
    yield '      [[ $split == true || $cur == -* ]] || { _filedir; return; }'
    yield "      ;;"


def completion(name, root, commands):
    words = words_for(root.options())
    yield f"# Completes the command line of {name}."
    yield f"_{name}() {{"
    yield "  local cur prev words cword split"
    yield "  _init_completion -s || return"
    if commands:
        words += [option.names for option in root.section("Subcommands")]
    yield f'  local flags="{" ".join(words)}"'
    if commands:
        yield "  local path='' word"
        yield '  for word in "${words[@]:1:cword-1}"; do'
        yield '    [[ $word == -* ]] || path+="${path:+ }$word"'
        yield "  done"
        # The longest come first: "policy set" before what begins with a shorter one.
        yield '  case "$path" in'
        for path in sorted(commands, key=lambda its: -len(its)):
            yield from completion_of_command(path, commands[path])
        yield "  esac"
    yield '  case "$prev" in'
    yield from cases(root.options())
    yield "  esac"
    yield '  [[ $split == false ]] || return'
    yield '  mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")'
    yield '  [[ ${COMPREPLY-} != *= ]] || compopt -o nospace'
    yield "}"
    yield f"complete -F _{name} {name}"


def completion_of_commands(name, root):
    """After a command, the completion of its program does the rest."""
    words = " ".join(option.names for option in root.section("Subcommands"))
    yield f"# Completes the command line of {name}."
    yield f"_{name}() {{"
    yield "  local cur prev words cword"
    yield "  _init_completion || return"
    yield "  if [[ $cword -eq 1 || ($cword -eq 2 && ${words[1]} == help) ]]; then"
    yield f'    mapfile -t COMPREPLY < <(compgen -W "{words}" -- "$cur")'
    yield "    return"
    yield "  fi"
    yield "  local program"
    yield "  case ${words[1]} in"
    for command, program in programs_of(root).items():
        yield f"    {command}) program={program} ;;"
    yield "    *) return ;;"
    yield "  esac"
    yield '  COMP_LINE="$program${COMP_LINE#*"${words[1]}"}" COMP_POINT=${#COMP_LINE}'
    yield '  COMP_WORDS=("$program" "${COMP_WORDS[@]:2}") COMP_CWORD=$((COMP_CWORD - 1))'
    yield '  declare -F "_$program" >/dev/null || _completion_loader "$program"'
    yield '  ! declare -F "_$program" >/dev/null || "_$program"'
    yield "}"
    yield f"complete -F _{name} {name}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, version, folder = sys.argv[1:]
    name = os.path.basename(program)
    root = help_of(program)
    commands = commands_of(program, root)
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    for file, lines in ((f"{name}.1", manual(name, version, root, commands, date, examples_of(program))),
                        (name, completion_of_commands(name, root) if programs_of(root)
                         else completion(name, root, commands))):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    main()
