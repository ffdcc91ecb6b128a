#include "transport/verbs/write_headers.h"

#include <arpa/inet.h>

#include <cstring>

namespace tutti::verbs {

Result<std::unique_ptr<WriteHeaders>> WriteHeaders::make(const std::shared_ptr<Endpoint>& endpoint, std::uint32_t sends,
                                                         std::uint32_t receives) {
  auto buffers = TUTTI_TRY(RegisteredMemory::make(endpoint, receives * sizeof(Header), access_flag::local_write));
  return std::unique_ptr<WriteHeaders>(new WriteHeaders(std::move(buffers), sends, receives));
}

Sge WriteHeaders::put(std::uint32_t immediate, std::uint32_t bytes) {
  Header& header = sent_[next_sent_];
  next_sent_ = (next_sent_ + 1) % sent_.size();
  header = {.immediate = immediate, .bytes = htonl(bytes)};
  return {.addr = reinterpret_cast<std::uint64_t>(&header), .length = sizeof header, .lkey = 0};
}

std::uint32_t WriteHeaders::next_buffer() {
  const std::uint32_t next = next_buffer_;
  next_buffer_ = (next_buffer_ + 1) % receives_;
  return next;
}

Sge WriteHeaders::buffer(std::uint32_t index) const {
  return {.addr = buffers_.address() + std::uint64_t{index} * sizeof(Header),
          .length = sizeof(Header),
          .lkey = buffers_.lkey()};
}

Completion WriteHeaders::read(Completion completion, std::uint32_t index) const {
  completion.wc_flags = 0;
  if (completion.opcode != DoneOpcode::receive || completion.byte_len != sizeof(Header) || index >= receives_)
    return completion;
  Header header;
  std::memcpy(&header, buffers_.data() + std::size_t{index} * sizeof(Header), sizeof header);
  completion.immediate = header.immediate;
  completion.byte_len = ntohl(header.bytes);
  completion.wc_flags = with_immediate;
  return completion;
}

}  // namespace tutti::verbs
