// The program sluice_server: its command line, its launch, its exit code.

#ifndef SLUICE_SERVER_PROGRAM_SERVER_PROGRAM_H_
#define SLUICE_SERVER_PROGRAM_SERVER_PROGRAM_H_

#include "common/encoding/transforms/builtin_transforms.h"
#include "common/protocol/attachment.h"
#include "common/protocol/program_optimizer.h"
#include "common/storage/file_system.h"

namespace sluice {

// The settings that a program gives its server in addition to the command line.
struct ServerProgramOptions {
  // Where the server keeps its files; outlives the server.
  FileSystem* files = &RealFileSystem();
  // The transforms of encodings: Sluice's own and those that the program adds.
  TransformRegistry transforms = BuiltinTransforms();
  AttachmentHook on_attachments;              // see ServerOptions; null: nobody reads them
  ProgramOptimizerFactory program_optimizer;  // null: the program brings none
};

// Runs a server until its job is over, prints its closing table, and returns the exit code, which
// worker/README.md lists. main calls it once.
int RunServerProgram(int argc, char** argv, const ServerProgramOptions& options = {});

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SERVER_PROGRAM_H_
