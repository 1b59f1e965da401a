// Files of flags: --config=FILE and --print-config, which ParseArguments() adds to every program.
// Used by command_line.cc alone.

#ifndef SLUICE_COMMON_BASE_CONFIG_FILE_H_
#define SLUICE_COMMON_BASE_CONFIG_FILE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace sluice {

// Adds --config and --print-config to `app`, unless it has flags of these names. FILE holds one
// JSON object, from the names of flags to their values, with // and /* */ comments. A key whose
// flag the command line or the environment gives sets nothing. An unknown key and a value of a
// wrong type are CLI::ParseErrors that name the file. If `file` is not empty, it is read where the
// command line does not name another.
void AddConfigFlags(CLI::App& app, const std::string& file);

// Whether --print-config was given to `app`, which has parsed its arguments.
bool AsksForConfig(const CLI::App& app);

// The object that --config reads, with the value of each flag that is set or has a default. The
// last line does not end with a newline.
std::string ConfigText(const CLI::App& app);

// Appends to an error of the arguments the file that sets the flag which the error names first.
std::string NameFile(const CLI::App& app, const std::string& error);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_CONFIG_FILE_H_
