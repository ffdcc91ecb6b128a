// Which message goes to which receive: those that have come without a receive, and the receives without a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "collective/packet.h"

namespace tutti {

/// A message that has no receive yet.
struct Unexpected {
  Rank from = 0;
  PacketHeader header;
  std::vector<std::byte> data = {};        ///< of a small one
  bool whole = false;                      ///< all of it is here
  std::shared_ptr<Message> taken_by = {};  ///< matched while it was still arriving

  std::size_t kept_bytes() const { return sizeof(Unexpected) + data.size(); }
  MessageEnvelope envelope() const {
    const DataType type = enumerator<DataType>(header.type).value();
    return {.source = from, .tag = header.tag, .bytes = header.bytes, .type = type};
  }
};

/// Both in the order in which they came.
class Matching {
 public:
  Unexpected& add(Unexpected message);
  /// Room for a message that comes; the data of a small one is to follow. Errors: system (too much is kept).
  Result<Unexpected*> keep(Rank from, const PacketHeader& header);
  void forget(const Unexpected& message);
  /// The first message that such a receive gets; null: none.
  Unexpected* kept_for(const MessageEnvelope& wanted);

  void post(const std::shared_ptr<Message>& receive) { posted_.push_back(receive); }
  /// Takes out the first receive that gets this message; null: none.
  std::shared_ptr<Message> receive_of(const Unexpected& message);
  void cancel(const Message& receive);
  /// Null: no receive is without a message.
  const Message* first_posted() const { return posted_.empty() ? nullptr : posted_.front().get(); }
  /// Whether a receive waits for this source, or for any.
  bool expects(Rank source) const;

  /// All receives; null, too.
  template <class Visit>
  void visit(Visit each) const {
    std::ranges::for_each(posted_, each);
    for (const Unexpected& kept : unexpected_) each(kept.taken_by);
  }

 private:
  std::list<std::shared_ptr<Message>> posted_;
  std::list<Unexpected> unexpected_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace tutti
