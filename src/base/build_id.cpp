#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace tutti {
namespace {

struct Wanted {
  std::uintptr_t inside;
  std::string found;
};

/// The notes of one segment: each has a header, a name and a description, padded to four bytes.
std::string id_in(std::span<const unsigned char> notes) {
  constexpr auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    const std::size_t name_bytes = padded(header.n_namesz), id_bytes = padded(header.n_descsz);
    const auto rest = notes.subspan(sizeof header);
    if (rest.size() < name_bytes || rest.size() - name_bytes < id_bytes) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(rest.data(), "GNU", 4) == 0) {
      std::string id;
      for (const unsigned char byte : rest.subspan(name_bytes, header.n_descsz)) id += fmt::format("{:02x}", byte);
      return id;
    }
    notes = rest.subspan(name_bytes + id_bytes);
  }
  return {};
}

int look(dl_phdr_info* object, std::size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
  bool here = false;
  for (const auto& header : headers)
    here = here || (header.p_type == PT_LOAD && wanted.inside - (object->dlpi_addr + header.p_vaddr) < header.p_memsz);
  if (!here) return 0;
  for (const auto& header : headers)
    if (header.p_type == PT_NOTE && wanted.found.empty())
      wanted.found =
          id_in({reinterpret_cast<const unsigned char*>(object->dlpi_addr + header.p_vaddr), header.p_memsz});
  return 1;
}

}  // namespace

std::string build_id() {
  Wanted wanted{.inside = reinterpret_cast<std::uintptr_t>(&look), .found = {}};
  dl_iterate_phdr(look, &wanted);
  return wanted.found;
}

}  // namespace tutti
