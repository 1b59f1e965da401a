// Lets the workers of a launch end after its server.
//
// When mpirun is told to end (Ctrl-C, SIGTERM), it sends SIGTERM to all ranks. A second later it
// sends SIGKILL to the ranks that are left. Open MPI waits for that second with sleep(). If a rank
// ends meanwhile, its SIGCHLD interrupts the sleep(), and the second is over at once. So if a
// worker ended at SIGTERM, mpirun would kill the server before it has removed its socket and
// printed its closing table.

#ifndef SLUICE_COMMON_LAUNCH_OUTLIVE_SERVER_H_
#define SLUICE_COMMON_LAUNCH_OUTLIVE_SERVER_H_

namespace sluice {

// From now on, SIGTERM, SIGINT and SIGHUP end this process two seconds after they arrive. Until
// then it works on, and a call of exit() waits. If OMPI_MCA_odls_base_sigkill_timeout tells mpirun
// to wait longer, the process ends after that time. Call it in a worker whose server is in the same
// launch. Uses SIGALRM. Signals that the program handles already are left alone.
void OutliveServer();

// Whether OutliveServer() was called, so that the server says for all ranks why the job ends.
bool OutlivesServer();

// Whether such a signal has arrived.
bool WasToldToStop();

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_OUTLIVE_SERVER_H_
