// What a test tells the fake and asks it, and the words for its numbers.
#include "exports.h"
#include "fake_verbs.h"
#include "faults.h"
#include "process.h"

using namespace tutti::testing::fake_verbs;

extern "C" {

void fake_verbs_counters(FakeVerbsCounters* result) {
  const Counters& now = counters();
  *result = {.posts = now.posts,
             .requests = now.requests,
             .requests_with_immediate = now.requests_with_immediate,
             .requests_inline = now.requests_inline,
             .signaled = now.signaled,
             .bytes_written = now.bytes_written,
             .bytes_inline = now.bytes_inline,
             .receives = now.receives,
             .receive_posts = now.receive_posts,
             .polls = now.polls,
             .completions = now.completions,
             .arms = now.arms,
             .registrations = now.registrations,
             .binds = now.binds,
             .bytes_through_windows = now.bytes_through_windows};
}

void fake_verbs_live(FakeVerbsLive* result) {
  const Counters& now = counters();
  *result = {.registered_bytes = now.registered_bytes,
             .contexts = now.contexts,
             .domains = now.domains,
             .regions = now.regions,
             .channels = now.channels,
             .completion_queues = now.completion_queues,
             .queue_pairs = now.queue_pairs,
             .windows = now.windows};
}

int fake_verbs_fault(const char* text) {
  return faults().add(text) ? 0 : -1;
}

void fake_verbs_reset() {
  faults().clear();
  Counters& now = counters();
  for (std::atomic<std::uint64_t>* const counter :
       {&now.posts, &now.requests, &now.requests_with_immediate, &now.requests_inline, &now.signaled,
        &now.bytes_written, &now.bytes_inline, &now.receives, &now.receive_posts, &now.polls, &now.completions,
        &now.arms, &now.registrations, &now.binds, &now.bytes_through_windows})
    counter->store(0);
}

void fake_verbs_set_port(int device, int up) {
  if (Process* const process = Process::current()) process->set_port(device, up != 0);
}

const char* ibv_wc_status_str(tutti::verbs::Status status) {
  using tutti::verbs::Status;
  switch (status) {
    case Status::success: return "success";
    case Status::local_length_error: return "local length error";
    case Status::local_qp_operation_error: return "local QP operation error";
    case Status::local_protection_error: return "local protection error";
    case Status::flushed: return "Work Request Flushed Error";
    case Status::window_bind_error: return "memory window bind error";
    case Status::remote_invalid_request: return "remote invalid request error";
    case Status::remote_access_error: return "remote access error";
    case Status::remote_operation_error: return "remote operation error";
    case Status::retries_exceeded: return "transport retry counter exceeded";
    case Status::rnr_retries_exceeded: return "RNR retry counter exceeded";
    case Status::fatal: return "fatal error";
    case Status::general: return "general error";
  }
  return "unknown";
}

const char* ibv_event_type_str(tutti::verbs::EventType type) {
  using tutti::verbs::EventType;
  switch (type) {
    case EventType::cq_error: return "CQ error";
    case EventType::qp_fatal: return "local work queue catastrophic error";
    case EventType::qp_request_error: return "invalid request local work queue error";
    case EventType::qp_access_error: return "local access violation work queue error";
    case EventType::device_fatal: return "local catastrophic error";
    case EventType::port_active: return "port active";
    case EventType::port_error: return "port error";
  }
  return "unknown";
}
}
