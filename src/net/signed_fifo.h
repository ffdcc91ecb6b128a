// Fifos for ranks without call descriptors: before the first message of each call they send a mark that identifies the
// call.
#pragma once

#include <functional>
#include <memory>

#include "transport/call_descriptor.h"
#include "transport/fifo.h"

namespace tutti {

/// `mark`: the call that the rank is in; one for all connections of a communicator. The mark is sent as a message of
/// its own. Driven by the thread that drives the call.
class SignedSender final : public Sender {
 public:
  SignedSender(std::unique_ptr<Sender> through, const CallMark& mark) : through_(std::move(through)), mark_(mark) {}
  Result<std::span<std::byte>> acquire() override;
  Result<void> commit(std::size_t bytes) override { return through_->commit(bytes); }
  Result<bool> flush() override { return through_->flush(); }
  Result<Settled> settled() override { return through_->settled(); }
  std::size_t slot_bytes() const override { return through_->slot_bytes(); }
  Offering* offering() override { return through_->offering(); }
  void poll_set(std::vector<PollItem>& items) const override { through_->poll_set(items); }

 private:
  std::unique_ptr<Sender> through_;
  const CallMark& mark_;
  std::uint64_t said_ = 0;  // the last call whose mark was sent
};

class SignedReceiver final : public Receiver, public Landing {
 public:
  /// What becomes of the mark of another call. False: ask again. Errors: the call's.
  using Judge = std::function<Result<bool>(const CallMark& theirs)>;

  SignedReceiver(std::unique_ptr<Receiver> through, const CallMark& mark, int peer, Judge judge)
      : through_(std::move(through)), lands_(through_->landing()), mark_(mark), peer_(peer), judge_(std::move(judge)) {}
  /// Errors, besides those of the fifo: those of the judge.
  Result<std::span<const std::byte>> peek(std::size_t bytes) override;
  Result<void> release() override { return through_->release(); }
  Result<bool> drained() override { return through_->drained(); }
  Landing* landing() override { return lands_ == nullptr ? nullptr : this; }
  Offers* offers() override { return through_->offers(); }
  Result<std::span<const std::byte>> expect(std::size_t bytes) override;
  void read_ahead(bool on) override { lands_->read_ahead(on); }
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes) override { return lands_->arrived(at, bytes); }
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override { return lands_->land(at, into); }
  /// Later, as long as the peer has not said that it is in the same call.
  Invited invite(std::size_t ahead, std::span<std::byte> memory) override {
    return heard_ == mark_.sequence ? lands_->invite(ahead, memory) : Invited::later;
  }
  bool closed() override { return lands_->closed(); }
  Coming coming() const override { return lands_->coming(); }
  void poll_set(std::vector<PollItem>& items) const override { through_->poll_set(items); }

 private:
  Result<bool> hear();

  std::unique_ptr<Receiver> through_;
  Landing* lands_;
  const CallMark& mark_;
  int peer_;
  Judge judge_;
  std::uint64_t heard_ = 0;  // the last call whose mark was received and correct
};

}  // namespace tutti
