// Enumerators from numbers that come from another process, from a file or from shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

namespace tutti {

/// The bounds of an enumeration without gaps. An enumeration names its own, as `last`, and as `first` where that is not
/// number 0; one that is made from a table specializes this.
template <class Enum>
struct EnumBounds {
  static constexpr Enum first = [] {
    if constexpr (requires { Enum::first; })
      return Enum::first;
    else
      return Enum{};
  }();
  static constexpr Enum last = Enum::last;
};

/// The enumerator with that number. Nothing: there is none.
template <class Enum>
constexpr std::optional<Enum> enumerator(std::uint64_t number) {
  if (number < static_cast<std::uint64_t>(EnumBounds<Enum>::first) ||
      number > static_cast<std::uint64_t>(EnumBounds<Enum>::last))
    return std::nullopt;
  return static_cast<Enum>(number);
}

/// An enumerator inside a message or shared memory. Another process writes it, so it may be any number until it has
/// been checked.
template <class Enum>
class Unchecked {
 public:
  using Number = std::underlying_type_t<Enum>;

  constexpr Unchecked(Enum value = EnumBounds<Enum>::first) : number_(static_cast<Number>(value)) {}

  constexpr std::optional<Enum> checked() const { return enumerator<Enum>(number_); }
  constexpr Number number() const { return number_; }
  constexpr bool operator==(Enum value) const { return number_ == static_cast<Number>(value); }

 private:
  Number number_;
};

}  // namespace tutti
