// Lets the workers of a launch end after its server.
//
// When mpirun shall end (Ctrl-C, SIGTERM), it sends SIGTERM to all ranks, and SIGKILL to those that
// are left a second later. If a rank ends in between, Open MPI's second is over at once, since it
// waits with sleep(), which the rank's SIGCHLD interrupts. So a worker that ended at SIGTERM would
// have the server killed, before it has removed its socket and printed its closing table.

#ifndef SLUICE_COMMON_LAUNCH_OUTLIVE_SERVER_H_
#define SLUICE_COMMON_LAUNCH_OUTLIVE_SERVER_H_

namespace sluice {

// From now on, SIGTERM, SIGINT and SIGHUP end this process two seconds after they arrive, and not
// before: until then it works on, and an exit() waits. If mpirun was given more patience
// (OMPI_MCA_odls_base_sigkill_timeout), it ends after that time. Call it in a worker whose server
// is in the same launch. Uses SIGALRM. Signals that the program handles already are left alone.
void OutliveServer();

// Whether OutliveServer() was called, so that the server says for all ranks why the job ends.
bool OutlivesServer();

// Whether such a signal has arrived.
bool WasToldToStop();

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_OUTLIVE_SERVER_H_
