// A libibverbs without hardware: what a test or the environment can tell it, and what it counted.
//
// libtutti_fake_verbs.so exports the functions of libibverbs that tutti loads. Its devices are joined by a fabric that
// moves real bytes between threads of one process, and between processes of one machine (and one PID namespace).
//
// Environment, read when a process opens its first device (devices and ports: whenever devices are listed):
//
//   FAKE_VERBS_FABRIC      path of a file that all processes of the fabric share; made by whoever comes first. Unset:
//                          the fabric is the process's own.
//   FAKE_VERBS_DEVICES     number of devices, fake0 and so on (1)
//   FAKE_VERBS_LINK        ethernet (RoCE; the default), infiniband (LIDs), or iwarp, which takes no immediates
//                          (posting one fails with a negative errno, as with siw), has the IPv4 address in GID 0, and
//                          is connected by the functions of librdmacm that the fake has, too
//   FAKE_VERBS_ADDRESS     IPv4 address of fake0, in its GIDs 1 and 2 (127.0.0.1); that of fakeN is N higher
//   FAKE_VERBS_LID         of fake0, where the link is infiniband (17); that of fakeN is N higher
//   FAKE_VERBS_PORT_DOWN   numbers of devices whose port is down, separated by commas
//   FAKE_VERBS_MTU         of each port, as verbs number it: 1 is 256, 5 is 4096 bytes (3)
//   FAKE_VERBS_MAX_INLINE  bytes that a queue pair takes at most (256; with iwarp at most 80, as siw)
//   FAKE_VERBS_MAX_QP_WR   requests in a queue, at most (16384)
//   FAKE_VERBS_MAX_CQE     completions in a queue, at most (65536)
//   FAKE_VERBS_MEMLOCK     bytes that a process may register; more is refused with ENOMEM (0: no limit)
//   FAKE_VERBS_WINDOWS     0: no memory windows; with iwarp there are none anyway (1); 2: each bind is refused
//   FAKE_VERBS_RETRY_MS    after which a request to one who does not answer ends with "retries exceeded" (50); to a
//                          queue pair that is there but not yet ready, twenty times as much
//   FAKE_VERBS_RNR_MS      time of one of the rnr_retry attempts while no receive is posted (1)
//   FAKE_VERBS_DEAF_MS     so long after it was accepted, the connection of an iWARP queue pair is reported to the end
//   that
//                          accepted it; until then the queue pair overlooks what arrives, and sees it only when more
//                          does, as siw in a moment that is shorter (0)
//   FAKE_VERBS_SEED        not 0: scrambles. Requests are delayed by chance, so queue pairs overtake each other; memory
//                          that will be written holds junk from the post until it is written; memory that is sent is
//                          read late; local completions come late.
//   FAKE_VERBS_FAULT       faults, see fake_verbs_fault
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {

/// Of this process, since it started or since fake_verbs_reset.
struct FakeVerbsCounters {
  std::uint64_t posts;                    ///< calls of post_send
  std::uint64_t requests;                 ///< work requests that these calls accepted
  std::uint64_t requests_with_immediate;  ///< of them
  std::uint64_t requests_inline;          ///< of them
  std::uint64_t signaled;                 ///< of them
  std::uint64_t bytes_written;            ///< delivered into memory of others
  std::uint64_t bytes_inline;             ///< accepted
  std::uint64_t receives;                 ///< posted
  std::uint64_t receive_posts;            ///< calls of post_recv
  std::uint64_t polls;                    ///< calls of poll_cq
  std::uint64_t completions;              ///< that these calls returned
  std::uint64_t arms;                     ///< calls of req_notify_cq
  std::uint64_t registrations;            ///< calls that registered memory
  std::uint64_t binds;                    ///< of windows
  std::uint64_t bytes_through_windows;    ///< of those written, delivered into windows of others
};

/// What this process has now.
struct FakeVerbsLive {
  std::uint64_t registered_bytes;
  std::uint64_t contexts, domains, regions, channels, completion_queues, queue_pairs, windows;
};

void fake_verbs_counters(FakeVerbsCounters* counters);
void fake_verbs_live(FakeVerbsLive* live);

/// Adds faults of this process: "POINT:N:WHAT", several separated by commas. The N-th time from now on (from 1)
///   open_device, alloc_pd, reg_mr, alloc_mw, create_comp_channel, create_cq, create_qp, modify_qp, query_port,
///   query_gid, post_send, post_recv, req_notify, poll_cq   fails once with the errno WHAT, by name or number, status
///   a work request completes with the status WHAT, a number, and stops its queue pair, port_down    a work request
///   takes the port of its device down ("port_down:N"): a port error event, and all that is
///                under way ends with retries exceeded.
///   device_fatal, cq_error, qp_fatal   a work request is the last at which the device does anything ("cq_error:N"): it
///                goes on taking requests, completes none, and says so by an event.
/// Nothing of a chain is posted after the request at which post_send or post_recv fails; each request counts.
/// Returns 0, or -1 where the text says nothing that is known; then nothing was added.
int fake_verbs_fault(const char* faults);

/// Forgets all counts and faults.
void fake_verbs_reset();

/// Takes a device's port of this process down or up again; each change is an asynchronous event.
void fake_verbs_set_port(int device, int up);
}
#pragma GCC visibility pop
