// The program sluice_server: its command line, its launch, its exit code.

#ifndef SLUICE_SERVER_PROGRAM_SERVER_PROGRAM_H_
#define SLUICE_SERVER_PROGRAM_SERVER_PROGRAM_H_

#include "common/storage/file_system.h"

namespace sluice {

// Runs a server until its job is over, and prints its closing table. What it keeps is in `files`,
// which outlives it. To be called by main, once. Returns the exit code, as README.md lists them.
int RunServerProgram(int argc, char** argv, FileSystem& files = RealFileSystem());

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SERVER_PROGRAM_H_
