// Loads vectors of an element type, widens them to the type in which they are combined, narrows and stores them; per
// target.
//
// Gives the same bits as widen() and narrow() in kernels/ops.h.
#if defined(TUTTI_CODEC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_CODEC_INL_H
#undef TUTTI_CODEC_INL_H
#else
#define TUTTI_CODEC_INL_H
#endif

#include <cstring>

#include "hwy/highway.h"
#include "kernels/ops.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Types that are combined without widening.
template <class T>
struct Codec {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Packed = D;
  static HWY_INLINE V decode(hn::Vec<Packed> v) { return v; }
  static HWY_INLINE hn::Vec<Packed> encode(V v) { return v; }
};

/// Small floats: integer arithmetic on float32 bits.
template <class Format, class Bits>
struct Codec<SmallFloat<Format, Bits>> {
  using F = Format;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Packed = hn::Rebind<Bits, D>;
  using DU = hn::RebindToUnsigned<D>;
  using DI = hn::RebindToSigned<D>;
#if HWY_TARGET <= HWY_AVX2
  static constexpr bool has_f16 = F::exponent_bits == 5 && F::mantissa_bits == 10;  // F16C rounds like narrow()
#else
  static constexpr bool has_f16 = false;
#endif
  static constexpr int sign_shift = 31 - F::exponent_bits - F::mantissa_bits;

  static HWY_INLINE hn::Vec<DU> bits_of(V v) {
    return hn::BitCast(DU(), v);
  }
  static HWY_INLINE V float_of(hn::Vec<DU> v) {
    return hn::BitCast(D(), v);
  }
  static HWY_INLINE hn::Vec<DU> u32(std::uint32_t value) {
    return hn::Set(DU(), value);
  }
  /// Lane by lane, a < b for values below 2^31.
  static HWY_INLINE hn::Mask<DU> less(hn::Vec<DU> a, hn::Vec<DU> b) {
    return hn::RebindMask(DU(), hn::Lt(hn::BitCast(DI(), a), hn::BitCast(DI(), b)));
  }

  static HWY_INLINE V decode(hn::Vec<Packed> v) {
    if constexpr (F::exponent_bits == 8) {
      return float_of(hn::ShiftLeft<F::shift>(hn::PromoteTo(DU(), v)));
    } else if constexpr (has_f16) {
      return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), v));
    } else {
      const auto code = hn::PromoteTo(DU(), v);
      const auto magnitude = hn::And(code, u32(F::magnitude));
      const auto sign = hn::ShiftLeft<sign_shift>(hn::Xor(code, magnitude));
      const auto mantissa = hn::ShiftLeft<F::shift>(magnitude);
      const auto steps = hn::ConvertTo(D(), hn::BitCast(DI(), magnitude));
      const auto subnormal = bits_of(hn::Mul(steps, float_of(u32(F::subnormal_step))));
      auto bits = hn::Add(mantissa, u32(F::rebias));
      bits = hn::IfThenElse(less(magnitude, u32(1u << F::mantissa_bits)), subnormal, bits);
      const auto special = less(u32((F::finite ? F::nan : F::exponent_mask) - 1), magnitude);
      bits = hn::IfThenElse(special, hn::Or(mantissa, u32(0x7f800000u)), bits);
      return float_of(hn::Or(bits, sign));
    }
  }

  static HWY_INLINE hn::Vec<Packed> encode(V v) {
    if constexpr (has_f16) {
      return hn::BitCast(Packed(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
    } else {
      const auto magnitude = hn::And(bits_of(v), u32(0x7fffffffu));
      const auto sign = hn::ShiftRight<sign_shift>(hn::Xor(bits_of(v), magnitude));
      auto bits = hn::Sub(magnitude, u32(F::rebias));
      const auto odd = hn::And(hn::ShiftRight<F::shift>(bits), u32(1));
      bits = hn::ShiftRight<F::shift>(hn::Add(hn::Add(bits, u32((1u << (F::shift - 1)) - 1)), odd));
      bits = hn::IfThenElse(less(u32(F::overflow), bits), u32(F::overflow), bits);
      if constexpr (F::exponent_bits < 8) {
        const auto magic = u32(F::subnormal_magic);
        const auto subnormal = hn::Sub(bits_of(hn::Add(float_of(magnitude), float_of(magic))), magic);
        bits = hn::IfThenElse(less(magnitude, u32(F::normal_min)), subnormal, bits);
      }
      bits = hn::IfThenElse(less(u32(0x7f800000u), magnitude), u32(F::nan), bits);
      return hn::DemoteTo(Packed(), hn::BitCast(DI(), hn::Or(bits, sign)));
    }
  }
};

/// `lanes` ≤ Lanes(d) elements at any address; the other lanes are zero.
template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, const hn::TFromD<D>* from, std::size_t lanes) {
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, lanes), d, from);
#else
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(D())] = {};
  std::memcpy(buffer, from, lanes * sizeof *buffer);
  return hn::Load(d, buffer);
#endif
}

template <class D>
HWY_INLINE void store_some(hn::Vec<D> v, D d, hn::TFromD<D>* to, std::size_t lanes) {
#if HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, lanes), d, to);
#else
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(D())];
  hn::Store(v, d, buffer);
  std::memcpy(to, buffer, lanes * sizeof *buffer);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();
#endif
