// What a rank says of its buffers.
#include "collective/collective_inside_host.h"
#include "comm/given_up_rights.h"

namespace tutti {
namespace {

/// A rank that has given up rights says so in this call already, so that all ranks choose slots. What CMA needs costs a
/// second system call: where all buffers of all calls were mapped, a rank whose buffers are mapped does not look, and
/// the first call with other buffers on some ranks goes through slots.
void write_rights(CallDescriptor& descriptor, Communicator& communicator, bool mapped) {
  Process& process = communicator.process();
  const Membership& members = communicator.members();
  const AccessFacts& facts = communicator.plans().access_facts();
  const bool may_pull =
      facts.pulls && (!mapped || communicator.memory().notes().all_mapped != true || facts.forced == Access::cma);
  descriptor.mappable = still_maps(process, members) ? 1 : 0;
  descriptor.readable = descriptor.mappable != 0 && may_pull && still_pulls(process, members) ? 1 : 0;
}

/// Asks for the pages in the middle of both buffers: their ends often share a page with other data.
bool on_huge_pages(Communicator& communicator, const CollectiveRun& run) {
  PageKinds& pages = communicator.process().memory.pages;
  const auto huge = [&pages](const std::byte* at, std::size_t bytes) {
    return bytes == 0 || pages.huge(at + bytes / 2);
  };
  return huge(run.input(), run.input_bytes()) && huge(run.output(), run.output_bytes());
}

}  // namespace

void describe_buffers(CallDescriptor& descriptor, Communicator& communicator, const CollectiveRun& run,
                      const AccessTable& ordinary) {
  const auto& segments = communicator.process().memory.segments;
  const auto locate = [&](const std::byte* at, std::size_t bytes) -> BufferDescriptor {
    BufferDescriptor buffer{.address = reinterpret_cast<std::uint64_t>(at)};
    if (bytes == 0) {
      buffer.segment = BufferDescriptor::nothing;
    } else if (const auto location = segments.find(at, bytes)) {
      buffer.segment = location->name.id;
      buffer.generation = location->name.generation;
      buffer.offset = location->offset;
    }
    return buffer;
  };
  descriptor.input = locate(run.input(), run.input_bytes());
  descriptor.output = locate(run.output(), run.output_bytes());
  descriptor.retired = segments.retired();
  const bool mapped = descriptor.input.segment != 0 && descriptor.output.segment != 0;
  descriptor.carries = 0;
  descriptor.huge = 0;
  const AccessFacts& facts = communicator.plans().access_facts();
  descriptor.mappable = descriptor.readable = 1;
  if (facts.one_process || facts.forced == Access::slots) return;
  write_rights(descriptor, communicator, mapped);
  if (mapped) return;
  descriptor.carries = may_carry(run.size(), facts, ordinary) ? 1 : 0;
  descriptor.huge = pages_matter(run.size(), facts, ordinary) && on_huge_pages(communicator, run) ? 1 : 0;
}

}  // namespace tutti
