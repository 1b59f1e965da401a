// TCP connections between two processes of one machine.
//
// The system's congestion control is made for networks. bbr, which some systems choose, sends at a
// measured pace, and within one machine a round of a large model then costs a quarter more CPU
// time. So these connections use reno: it does no pacing, nothing is lost here, and every Linux has
// it and lets every user choose it. Connections that leave the machine keep the system's choice.

#ifndef SLUICE_COMMON_NET_LOCAL_TCP_H_
#define SLUICE_COMMON_NET_LOCAL_TCP_H_

namespace sluice {

// Chooses reno for a TCP socket that is, or will be, connected within this machine. If the system
// refuses, the socket keeps what it has. Any thread may call it.
void SendWithoutPacing(int socket);

// Does the same for a connected socket if its two ends have the same IP address, or if its peer's
// is a loopback address. Leaves all other sockets as they are.
void SendWithoutPacingIfLocal(int socket);

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_LOCAL_TCP_H_
