// The C functions of messages with tags.
#include <algorithm>

#include <fmt/format.h>

#include "api/api_submit.h"
#include "call/arguments.h"
#include "submit/tagged_messages.h"

namespace tutti::api {
namespace {

/// `any`: of a receive or a probe, which may leave both open.
Result<void> check_source_and_tag(const Communicator& communicator, int rank, int tag, bool any) {
  const int ranks = communicator.ranks();
  if ((rank < 0 || rank >= ranks) && !(any && rank == TUTTI_ANY_SOURCE))
    return invalid_argument(fmt::format("{} {} is not a rank (0 to {})", any ? "source" : "peer", rank, ranks - 1));
  if (tag < 0 && !(any && tag == TUTTI_ANY_TAG)) return invalid_argument(fmt::format("tag {} is negative", tag));
  return {};
}

void tell(tuttiStatus_t* status, const MessageEnvelope& envelope, bool cancelled) {
  if (status == nullptr) return;
  *status = {};
  status->source = envelope.source;
  status->tag = envelope.tag;
  status->count = envelope.bytes / size_of(envelope.type);
  status->type = static_cast<tuttiDataType_t>(number_of(envelope.type));
  status->cancelled = cancelled ? 1 : 0;
}

/// `asked`: all but bytes and type, which `count` and `type` give.
tuttiResult_t start_message(tuttiComm_t comm, PeerRequest asked, std::size_t count, int type, int tag,
                            tuttiRequest_t* request) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(request, "request"));
    auto entry = TUTTI_TRY(use(comm));
    auto& communicator = entry->communicator;
    asked.type = TUTTI_TRY(data_type(type));
    asked.bytes = count * size_of(asked.type);
    const Rank from = asked.peer;
    TUTTI_TRY(check_source_and_tag(*communicator, from, tag, !asked.send));
    asked.peer = std::max(from, 0);
    TUTTI_TRY(check_arguments(asked, count, communicator->ranks()));
    TUTTI_TRY(check_on_host(*communicator, asked.data));
    if (communicator->failed()) return communicator->report_failure();
    const auto message = std::make_shared<TaggedMessage>(communicator, asked, from, tag);
    void* const handle = handles<TaggedMessage>().open(message);
    if (handle == nullptr) return Error{.code = Code::system, .what = "more than 65536 requests"};
    *request = static_cast<tuttiRequest_t>(handle);
    message->start();
    return {};
  });
}

Result<std::shared_ptr<TaggedMessage>> use(tuttiRequest_t request) {
  TUTTI_TRY(Process::get());
  const auto use = handles<TaggedMessage>().use(request);
  if (use) return use.shared();
  return invalid_argument("request is not a request, or has ended");
}

/// Frees the request of a message that has ended. Errors: the message's.
Result<void> finish(tuttiRequest_t* request, TaggedMessage& message, tuttiStatus_t* status) {
  (void)handles<TaggedMessage>().close(message.communicator().process().system, *request);
  *request = nullptr;
  tell(status, message.envelope(), message.cancelled());
  return message.result();
}

}  // namespace
}  // namespace tutti::api

using namespace tutti;       // NOLINT: the definitions below are the C functions of tutti.h
using namespace tutti::api;  // NOLINT

tuttiResult_t tuttiIsend(const void* sendbuff, size_t count, tuttiDataType_t type, int peer, int tag, tuttiComm_t comm,
                         tuttiRequest_t* request) {
  return start_message(comm, {.send = true, .data = bytes(const_cast<void*>(sendbuff)), .peer = peer}, count, type, tag,
                       request);
}

tuttiResult_t tuttiIrecv(void* recvbuff, size_t count, tuttiDataType_t type, int source, int tag, tuttiComm_t comm,
                         tuttiRequest_t* request) {
  return start_message(comm, {.send = false, .data = bytes(recvbuff), .peer = source}, count, type, tag, request);
}

tuttiResult_t tuttiTest(tuttiRequest_t* request, int* done, tuttiStatus_t* status) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(request, "request"));
    TUTTI_TRY(not_null(done, "done"));
    *done = 1;
    if (*request == nullptr) return {};
    auto message = TUTTI_TRY(use(*request));
    if (!message->test()) {
      *done = 0;
      return {};
    }
    return finish(request, *message, status);
  });
}

tuttiResult_t tuttiWait(tuttiRequest_t* request, tuttiStatus_t* status) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(request, "request"));
    if (*request == nullptr) return {};
    auto message = TUTTI_TRY(use(*request));
    auto waited = message->wait();
    if (!message->ended()) return waited;
    return finish(request, *message, status);
  });
}

tuttiResult_t tuttiCancel(tuttiRequest_t request, int* cancelled) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(cancelled, "cancelled"));
    auto message = TUTTI_TRY(use(request));
    *cancelled = message->cancel() ? 1 : 0;
    return {};
  });
}

tuttiResult_t tuttiIprobe(int source, int tag, tuttiComm_t comm, int* found, tuttiStatus_t* status) {
  return guarded([&]() -> Result<void> {
    TUTTI_TRY(not_null(found, "found"));
    auto entry = TUTTI_TRY(use(comm));
    TUTTI_TRY(check_source_and_tag(*entry->communicator, source, tag, true));
    auto envelope = TUTTI_TRY(probe(*entry->communicator, source, tag));
    *found = envelope ? 1 : 0;
    if (envelope) tell(status, *envelope, false);
    return {};
  });
}

tuttiResult_t tuttiProbe(int source, int tag, tuttiComm_t comm, tuttiStatus_t* status) {
  return guarded([&]() -> Result<void> {
    auto entry = TUTTI_TRY(use(comm));
    TUTTI_TRY(check_source_and_tag(*entry->communicator, source, tag, true));
    auto envelope = TUTTI_TRY(await_message(*entry->communicator, source, tag));
    tell(status, envelope, false);
    return {};
  });
}
