// What stands in for immediate data where a device has none (iWARP): a send behind each write, on the same queue pair,
// since only sends are ordered behind writes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/verbs/memory.h"

namespace tutti::verbs {

/// The headers that one queue pair sends and receives.
class WriteHeaders {
 public:
  /// What a send carries, in network byte order.
  struct Header {
    std::uint32_t immediate = 0;
    std::uint32_t bytes = 0;  ///< length of the write, which the completion of a send does not tell
  };

  /// For so many requests and receives at a time. Errors: system.
  static Result<std::unique_ptr<WriteHeaders>> make(const std::shared_ptr<Endpoint>& endpoint, std::uint32_t sends,
                                                    std::uint32_t receives);

  /// The memory of the next request's header, to be sent inline; valid until `sends` more were put.
  Sge put(std::uint32_t immediate, std::uint32_t bytes);

  /// The buffer for the next receive, in turn: receives are used up in order, so it is free.
  std::uint32_t next_buffer();
  Sge buffer(std::uint32_t index) const;

  /// The completion of the receive with this buffer, as if the write had carried an immediate. If no header came, it
  /// has none.
  Completion read(Completion completion, std::uint32_t index) const;

 private:
  WriteHeaders(RegisteredMemory buffers, std::uint32_t sends, std::uint32_t receives)
      : sent_(sends), receives_(receives), buffers_(std::move(buffers)) {}

  std::vector<Header> sent_;
  std::size_t next_sent_ = 0;
  std::uint32_t receives_;
  std::uint32_t next_buffer_ = 0;
  RegisteredMemory buffers_;
};

}  // namespace tutti::verbs
