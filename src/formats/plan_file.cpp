// Recognises the format of a plan file.
#include "formats/plan_file.h"

#include "formats/source.h"

namespace tutti::formats {

Result<Imported> import_plan(std::string_view text, Rank root) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const char kind = first == std::string_view::npos ? '\0' : text[first];
  if (kind == '<') return import_msccl(text, root);
  if (kind == '{') return import_mscclpp(text, root);
  return refused("line 1", "is neither XML nor JSON");
}

}  // namespace tutti::formats
