#include "submit/tagged_messages.h"

#include <utility>

#include "collective/mailbox_wait.h"
#include "progress/access_lease.h"
#include "progress/drive.h"

namespace tutti {
namespace {

Result<void> drive(Operation& operation) {
  Operation* const one = &operation;
  return drive(operation.communicator()->process(), {&one, 1}, Thread::program);
}

}  // namespace

TaggedMessage::TaggedMessage(std::shared_ptr<Communicator> communicator, const PeerRequest& request, Rank from, int tag)
    : communicator_(std::move(communicator)) {
  message_->send = request.send;
  message_->data = request.data;
  message_->envelope = {
      .source = request.send ? communicator_->rank() : from, .tag = tag, .bytes = request.bytes, .type = request.type};
  message_->to = request.peer;
}

void TaggedMessage::start() {
  Mailbox& mailbox = mailbox_of(*communicator_);
  mailbox.start(message_);
  mailbox.progress();
}

bool TaggedMessage::test() {
  if (!ended()) mailbox_of(*communicator_).progress();
  return ended();
}

Result<void> TaggedMessage::wait() {
  MailboxWait wait(*communicator_, mailbox_of(*communicator_), *message_);
  return drive(wait);
}

bool TaggedMessage::cancel() {
  return mailbox_of(*communicator_).cancel(*message_);
}

Result<void> TaggedMessage::result() {
  if (message_->state.load() != Message::State::failed) return {};
  if (communicator_->failed()) {
    communicator_->failure().mark_reported();
    take_back_buffers(*communicator_, nullptr);
  }
  return *message_->error;
}

Result<std::optional<MessageEnvelope>> probe(Communicator& communicator, Rank source, int tag) {
  if (communicator.failed()) return communicator.report_failure();
  auto envelope = mailbox_of(communicator).probe_to_the_end(source, tag);
  if (communicator.failed()) return communicator.report_failure();
  return envelope;
}

Result<MessageEnvelope> await_message(Communicator& communicator, Rank source, int tag) {
  if (communicator.failed()) return communicator.report_failure();
  MailboxProbe probe(communicator, mailbox_of(communicator), source, tag);
  TUTTI_TRY(drive(probe));
  if (!probe.found()) return communicator.report_failure();
  return *probe.found();
}

}  // namespace tutti
