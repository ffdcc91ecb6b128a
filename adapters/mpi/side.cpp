#include "adapters/mpi/side.h"

#include <algorithm>
#include <utility>

#include "adapters/mpi/datatype.h"

namespace tutti::mpi {
namespace {

constexpr std::size_t part_bytes = 1 << 30;  // before MPI 4, MPI_Pack counts in int

#if MPI_VERSION >= 4
using Bytes = MPI_Count;
constexpr auto mpi_pack = &PMPI_Pack_c;
constexpr auto mpi_unpack = &PMPI_Unpack_c;
#else
using Bytes = int;
constexpr auto mpi_pack = &PMPI_Pack;
constexpr auto mpi_unpack = &PMPI_Unpack;
#endif

/// Calls move(piece, address, elements, packed, bytes) for parts that an int can count. They are `packed` one behind
/// the other.
template <class Move>
int in_parts(const std::vector<Piece>& pieces, std::byte* packed, Move&& move) {
  for (const Piece& piece : pieces) {
    TypeFacts facts;
    if (const int code = facts_of(piece.type, facts); code != MPI_SUCCESS) return code;
    if (facts.size == 0) continue;
    if (!std::in_range<Bytes>(facts.size)) return MPI_ERR_COUNT;  // one element cannot be packed
    const auto most = static_cast<MPI_Count>(std::max<std::size_t>(1, part_bytes / facts.size));
    for (MPI_Count done = 0; done < piece.count; done += most) {
      const MPI_Count now = std::min(most, piece.count - done);
      const std::size_t bytes = static_cast<std::size_t>(now) * facts.size;
      std::byte* const at = piece.at + done * facts.extent;
      const int code = move(piece, at, static_cast<int>(now), packed, static_cast<Bytes>(bytes));
      if (code != MPI_SUCCESS) return code;
      packed += bytes;
    }
  }
  return MPI_SUCCESS;
}

}  // namespace

void Side::release() {
  for (MPI_Datatype& type : types_) PMPI_Type_free(&type);
  types_.clear();
  packed_.clear();
  own_.reset();
}

void Side::set(const void* at, std::size_t size) {
  base = static_cast<std::byte*>(const_cast<void*>(at));
  bytes = size;
}

void Side::set_own(std::size_t size) {
  own_ = std::make_unique_for_overwrite<std::byte[]>(size);
  set(own_.get(), size);
}

int Side::keep(const Piece& piece) {
  packed_.push_back(piece);
  if (piece.at == nullptr && MPI_BOTTOM == nullptr) return keep_from_bottom();
  if (is_predefined_type(piece.type)) return MPI_SUCCESS;  // nobody frees it; MPICH does not free a copy of one, either
  MPI_Datatype& type = packed_.back().type;
  if (const int code = PMPI_Type_dup(piece.type, &type); code != MPI_SUCCESS) return code;
  types_.push_back(type);
  return MPI_SUCCESS;
}

/// The type has addresses, and MPI_BOTTOM is NULL, which MPICH's MPI_Pack refuses: all is counted from elsewhere.
int Side::keep_from_bottom() {
  constexpr MPI_Aint elsewhere = 4096;
  constexpr int one = 1;
  constexpr MPI_Aint back = -elsewhere;
  Piece& piece = packed_.back();
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (const int code = PMPI_Type_create_hindexed(1, &one, &back, piece.type, &type); code != MPI_SUCCESS) return code;
  types_.push_back(type);
  piece.at = reinterpret_cast<std::byte*>(elsewhere);  // NOLINT: never accessed there
  piece.type = type;
  return PMPI_Type_commit(&types_.back());
}

int Side::take(const Piece& piece) {
  TypeFacts facts;
  if (const int code = check_type(piece.type, facts); code != MPI_SUCCESS) return code;
  const std::size_t size = static_cast<std::size_t>(piece.count) * facts.size;
  if (facts.dense || size == 0) {
    set(piece.at, size);
    return MPI_SUCCESS;
  }
  set_own(size);
  return keep(piece);
}

int Side::take(const std::vector<Piece>& pieces) {
  counts.assign(pieces.size(), 0);
  displacements.assign(pieces.size(), 0);
  bool dense = true;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].count == 0) continue;
    TypeFacts facts;
    if (const int code = check_type(pieces[i].type, facts); code != MPI_SUCCESS) return code;
    counts[i] = static_cast<std::size_t>(pieces[i].count) * facts.size;
    displacements[i] = bytes;
    bytes += counts[i];
    dense = dense && (facts.dense || counts[i] == 0);
  }
  if (dense) {
    lay_out_in_place(pieces);
    return MPI_SUCCESS;
  }
  set_own(bytes);
  for (const Piece& piece : pieces)
    if (piece.count > 0)
      if (const int code = keep(piece); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}

/// MPI's displacements may be negative, tutti's count from the lowest address.
void Side::lay_out_in_place(const std::vector<Piece>& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (counts[i] > 0 && (base == nullptr || pieces[i].at < base)) base = pieces[i].at;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    displacements[i] = counts[i] > 0 ? static_cast<std::size_t>(pieces[i].at - base) : 0;
}

int Side::pack() {
  return in_parts(packed_, base, [](const Piece& piece, const std::byte* at, int count, std::byte* to, Bytes size) {
    Bytes position = 0;
    return mpi_pack(at, count, piece.type, to, size, &position, quiet_comm());
  });
}

int Side::unpack() {
  return in_parts(packed_, base, [](const Piece& piece, std::byte* at, int count, const std::byte* from, Bytes size) {
    Bytes position = 0;
    return mpi_unpack(from, size, &position, at, count, piece.type, quiet_comm());
  });
}

}  // namespace tutti::mpi
